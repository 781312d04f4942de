#include "runtime/onnx/values/texts.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/classical/ml_attributes.h"
#include "runtime/onnx/file/newer_fields.h"
#include "runtime/onnx/structure/flatten.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

constexpr uint32_t kFirst = 1, kAll = ~uint32_t{0}, kChosen = 0b110;

// The use that an op has for text, which may be the inputs of the bits `over`.
struct OverText {
  uint32_t over = 0;
  bool makes_text = false;
};

// Ops that move and choose elements do so with text; the ops of ai.onnx.ml are not rows of the
// table.
OverText OverTextOf(absl::string_view op) {
  if (op == "ai.onnx.ml.ArrayFeatureExtractor") return {kFirst, true};
  if (op == "ai.onnx.ml.OneHotEncoder") return {kFirst, false};
  const OpFacts& facts = FactsOf(op);
  switch (facts.elements) {
    case Elements::kMade:
      return {facts.text, false};
    case Elements::kJoined:
      return {kAll, true};
    case Elements::kChosen:
      return {kChosen, true};
    default:
      return {kFirst, true};
  }
}

// Attributes that hold text as data, and no names of modes.
constexpr absl::string_view kTexts[] = {
    "cats_strings", "classes_strings", "classlabels_strings", "default_string",
    "keys_strings", "value_string",    "value_strings",       "values_strings",
};

void CollectTensor(const onnx::TensorProto& tensor, Vocabulary& texts) {
  if (!HoldsText(tensor)) return;
  for (const std::string& text : tensor.string_data()) texts.Add(text);
}

// Collects the texts of nodes, those that they hand to the model's own functions too.
class Collector {
 public:
  explicit Collector(Vocabulary& texts) : texts_(texts) {}

  void AddModel(const onnx::ModelProto& model) {
    for (const onnx::FunctionProto& function : model.functions()) {
      functions_.emplace(CanonicalDomain(function.domain()), function.name());
    }
    AddGraph(model.graph());
    for (const onnx::FunctionProto& function : model.functions()) {
      for (const onnx::NodeProto& node : function.node()) AddNode(node);
      const auto defaults = DefaultsOf(function);
      if (!defaults.ok()) continue;  // The parser of the function reports the error.
      for (const onnx::AttributeProto& attribute : *defaults) AddAttribute(attribute);
    }
  }

 private:
  void AddGraph(const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) CollectTensor(tensor, texts_);
    for (const onnx::NodeProto& node : graph.node()) AddNode(node);
  }

  void AddNode(const onnx::NodeProto& node) {
    if (node.op_type() == "LabelEncoder" || node.op_type() == "CategoryMapper") {
      texts_.Add(kUnusedText);
    }
    // Which of the attributes of a call become data, its body says.
    const bool calls = functions_.contains({CanonicalDomain(node.domain()), node.op_type()});
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (calls || absl::c_linear_search(kTexts, absl::string_view(attribute.name()))) {
        AddAttribute(attribute);
      }
      if (attribute.has_t()) CollectTensor(attribute.t(), texts_);
      if (attribute.has_g()) AddGraph(attribute.g());
      for (const onnx::GraphProto& graph : attribute.graphs()) AddGraph(graph);
    }
  }

  void AddAttribute(const onnx::AttributeProto& attribute) {
    if (attribute.has_s()) texts_.Add(attribute.s());
    for (const std::string& text : attribute.strings()) texts_.Add(text);
  }

  Vocabulary& texts_;
  std::set<std::pair<std::string, std::string>> functions_;  // domain, name
};

std::shared_ptr<const Vocabulary> Collect(const onnx::ModelProto& model) {
  auto texts = std::make_shared<Vocabulary>();
  Collector(*texts).AddModel(model);
  return texts;
}

// "input 1 is text, input 0 is numbers".
absl::Status Mixed(size_t text, size_t numbers) {
  return absl::UnimplementedError(
      absl::StrCat("mixes text and numbers: input ", text, " is text, input ", numbers, " is not"));
}

absl::Status NotOverText(size_t input) {
  return absl::UnimplementedError(
      absl::StrCat("input ", input,
                   " is text: text can be moved, compared for equality and looked up, "
                   "not computed with"));
}

// Checks that a lookup with keys of text takes text, and one with keys of numbers takes numbers.
absl::Status CheckKeys(bool keys_are_text, bool input_is_text) {
  if (keys_are_text == input_is_text) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("its keys are ", keys_are_text ? "text" : "numbers", ", input 0 is ",
                   input_is_text ? "text" : "numbers"));
}

}  // namespace

bool HoldsText(const onnx::TensorProto& tensor) {
  return tensor.data_type() == onnx::TensorProto::STRING;
}

bool IsTextConstant(const onnx::NodeProto& node) {
  return absl::c_any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
    return attribute.name() == "value_string" || attribute.name() == "value_strings" ||
           (attribute.name() == "value" && HoldsText(attribute.t()));
  });
}

TextWalk::TextWalk(const onnx::ModelProto& model) : vocabulary_(Collect(model)) {}

void TextWalk::Mark(ValueId value, TextKind kind) {
  if (kind != TextKind::kNumbers) all_.insert(value);
  if (kind == TextKind::kLookedUp) looked_up_.insert(value);
}

TextKind TextWalk::KindOf(ValueId value) const {
  if (!all_.contains(value)) return TextKind::kNumbers;
  return looked_up_.contains(value) ? TextKind::kLookedUp : TextKind::kText;
}

DraftTexts TextWalk::TextsOf(const onnx::NodeProto& proto, const NodeDraft& draft) const {
  DraftTexts texts{.vocabulary = vocabulary_.get()};
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (attribute.has_t() && HoldsText(attribute.t())) texts.attributes.insert(attribute.name());
  }
  for (const ValueId input : draft.inputs) texts.inputs.push_back(all_.contains(input));
  return texts;
}

absl::StatusOr<TextKind> TextWalk::Moved(const NodeDraft& draft, uint32_t over) const {
  constexpr size_t kNo = ~size_t{0};
  size_t text = kNo, numbers = kNo;
  TextKind kind = TextKind::kNumbers;
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    if (draft.inputs[i] == kNone) continue;
    const TextKind of = KindOf(draft.inputs[i]);
    const bool may_be = (over >> std::min<size_t>(i, 31) & 1) != 0;
    if (of != TextKind::kNumbers && !may_be) return NotOverText(i);
    if (of == TextKind::kNumbers && may_be) numbers = i;
    if (of == TextKind::kNumbers) continue;
    text = i;
    if (kind != TextKind::kLookedUp) kind = of;
  }
  if (text != kNo && numbers != kNo) return Mixed(text, numbers);
  return kind;
}

absl::StatusOr<std::vector<TextKind>> TextWalk::Results(const NodeDraft& draft,
                                                        const Graph& graph) const {
  const std::string& op = draft.op;
  const bool first_is_text = !draft.inputs.empty() && all_.contains(draft.inputs[0]);
  const auto one = [](bool is_text) {
    return std::vector<TextKind>{is_text ? TextKind::kText : TextKind::kNumbers};
  };
  if (op == "ai.onnx.ml.LabelEncoder" || op == "ai.onnx.ml.CategoryMapper") {
    RETURN_IF_ERROR(Moved(draft, kFirst).status());
    // The two that turn text into numbers and back.
    if (TextsIn(draft.attributes, "classes_strings") != nullptr ||
        op == "ai.onnx.ml.CategoryMapper") {
      return one(!first_is_text);
    }
    RETURN_IF_ERROR(CheckKeys(IsTextList(draft, "keys"), first_is_text));
    return one(IsTextList(draft, "values"));
  }
  if (op == "ai.onnx.ml.OneHotEncoder") {
    RETURN_IF_ERROR(CheckKeys(TextsIn(draft.attributes, "cats_strings") != nullptr, first_is_text));
    if (first_is_text && KindOf(draft.inputs[0]) == TextKind::kLookedUp &&
        draft.attributes.Int("zeros", 1) == 0) {
      return absl::UnimplementedError(
          "refuses unknown categories (zeros=0) of numbers that were written as text");
    }
  }
  if (op == CastOp::kName) {
    // Before opset 6 it was a name.
    const auto* name = draft.attributes.Get<std::string>("to");
    const bool to_text = name != nullptr
                             ? *name == "STRING"
                             : draft.attributes.Int("to", 0) == onnx::TensorProto::STRING;
    if (first_is_text && !to_text) {
      return absl::UnimplementedError("reads numbers in text, which is not supported");
    }
    if (!to_text) return std::vector<TextKind>();
    if (first_is_text) return std::vector<TextKind>{KindOf(draft.inputs[0])};
    return std::vector<TextKind>{TextKind::kLookedUp};
  }
  if (!draft.texts.attributes.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("attribute '", *draft.texts.attributes.begin(), "' is a tensor of text"));
  }
  const OverText text = OverTextOf(op);
  if (text.over == 0) {
    RETURN_IF_ERROR(Moved(draft, 0).status());
    return one(TextsIn(draft.attributes, "classlabels_strings") != nullptr &&
               absl::EndsWith(op, "Classifier"));
  }
  ASSIGN_OR_RETURN(const TextKind kind, Moved(draft, text.over));
  if (op == EqualOp::kName && kind == TextKind::kLookedUp &&
      absl::c_none_of(draft.inputs, [&](ValueId id) { return graph.ConstantOf(id) != nullptr; })) {
    return absl::UnimplementedError(
        "compares numbers written as text with a value that is not constant");
  }
  if (!text.makes_text) return std::vector<TextKind>();
  return std::vector<TextKind>(draft.outputs.size(), kind);
}

absl::StatusOr<std::vector<TextKind>> TextWalk::ResultsOfControl(const NodeDraft& draft) const {
  const size_t outputs = draft.outputs.size();
  if (draft.op != IfOp::kName || draft.inputs.size() < 1 + 2 * outputs) {
    RETURN_IF_ERROR(Moved(draft, 0).status());
    return std::vector<TextKind>();
  }
  std::vector<TextKind> kinds;
  const size_t results = (draft.inputs.size() - 1) / 2;
  for (size_t k = 0; k < outputs; ++k) {
    const size_t first = 1 + k, second = 1 + results + k;
    const TextKind a = KindOf(draft.inputs[first]), b = KindOf(draft.inputs[second]);
    const bool a_is_text = a != TextKind::kNumbers, b_is_text = b != TextKind::kNumbers;
    if (a_is_text != b_is_text) {
      return absl::UnimplementedError(absl::StrCat("output ", k, " is text in one branch only"));
    }
    kinds.push_back(a == TextKind::kLookedUp ? a : b);
  }
  return kinds;
}

}  // namespace reprise
