#include "runtime/onnx/importer.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/attributes.h"
#include "runtime/onnx/file/file_bytes.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/file/slim_model.h"
#include "runtime/onnx/file/tensors.h"
#include "runtime/onnx/file_values.h"
#include "runtime/onnx/gguf/gguf_file.h"
#include "runtime/onnx/gguf/gguf_model.h"
#include "runtime/onnx/initializers.h"
#include "runtime/onnx/kit/reasons.h"
#include "runtime/onnx/rewrites.h"
#include "runtime/onnx/signature.h"
#include "runtime/onnx/small_weights.h"
#include "runtime/onnx/structure/flatten.h"
#include "runtime/onnx/structure/grown_lists.h"
#include "runtime/onnx/structure/loop_check.h"
#include "runtime/onnx/structure/node_order.h"
#include "runtime/onnx/structure/repeated_pieces.h"
#include "runtime/onnx/values/float8_values.h"
#include "runtime/onnx/values/nibble_values.h"
#include "runtime/onnx/values/sequences.h"
#include "runtime/onnx/values/texts.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/quantized/float8.h"
#include "runtime/ops/recurrent/recurrent_op.h"

namespace reprise {
namespace {

constexpr int64_t kNewestOpset = 28;
// "Reshape", "com.microsoft.Gelu".
std::string OpName(const onnx::NodeProto& proto) {
  const std::string domain = CanonicalDomain(proto.domain());
  return domain.empty() ? proto.op_type() : absl::StrCat(domain, ".", proto.op_type());
}

// Returns whether the domain is a user's own, whose ops we cannot lack.
bool IsForeign(const std::string& domain) {
  const std::string name = CanonicalDomain(domain);
  return !name.empty() && name != "ai.onnx.ml" && name != "com.microsoft" &&
         !absl::StartsWith(name, "ai.onnx");
}
constexpr absl::string_view kHowToBringAnOp =
    ": bring it with `reprised --op-library FILE.so`, or RegisterOp in a program";

// The walk over one model.
class ModelImporter {
 public:
  ModelImporter(const onnx::ModelProto& model, const SlimModel& slim, const std::string& path,
                FileBytes file, LoadBudget& budget)
      : model_(model),
        slim_(slim),
        budget_(budget),
        texts_(model),
        tensors_(path, std::move(file), texts_.vocabulary().get()) {}

  // Ranks of inputs that declare none.
  void SetRanks(const InputRanks& ranks) { ranks_ = ranks; }

  absl::StatusOr<ImportedModel> Run() {
    RETURN_IF_ERROR(Walk());
    const auto is_sequence = [&](const std::string& name) { return sequences_.Holds(name); };
    RETURN_IF_ERROR(values_.NoteOrReturn(AddOutputs(model_.graph(), is_sequence, texts_, values_)));
    RETURN_IF_ERROR(values_.NoteOrReturn(CheckOutputs()));
    if (!examined_.nodes.empty() || !values_.reasons.empty()) {
      for (RefusedNode& node : examined_.nodes) {
        node.reason.dtypes = DTypesText(graph_, node.inputs, texts_.values());
        values_.reasons.AddNode(node.code, std::move(node.reason));
      }
      return values_.reasons.ToStatus();
    }
    KeepSmallWeights(values_);
    if (!graph_.Compact()) return absl::InternalError("the imported graph is cyclic");
    RETURN_IF_ERROR(CheckLoops(graph_));
    values_.model.files = tensors_.Files();
    values_.model.vocabulary = texts_.vocabulary();
    return std::move(values_.model);
  }

  absl::StatusOr<ExaminedModel> Examine() {
    RETURN_IF_ERROR(Walk());
    for (const auto& info : model_.graph().value_info()) Declare(info);
    for (const auto& info : model_.graph().output()) Declare(info);
    examined_.graph = std::move(graph_);
    examined_.inputs = std::move(values_.model.inputs);
    examined_.texts = texts_.values();
    examined_.others = std::move(values_.reasons);
    return std::move(examined_);
  }

 private:
  absl::Status CheckOutputs() const {
    for (const auto& info : model_.graph().output()) {
      const auto it = values_.by_name.find(info.name());
      if (it == values_.by_name.end()) continue;
      const int64_t form = float8_.FormOf(it->second);
      const bool nibbles = nibbles_.TypeOf(it->second) != 0;
      if (form == 0 && !nibbles) continue;
      return absl::UnimplementedError(absl::StrCat(Quoted("output", info.name()), ": is ",
                                                   nibbles ? "of four bits" : ops::Float8Name(form),
                                                   ", which no answer can hold"));
    }
    return absl::OkStatus();
  }

  // Everything but the outputs. OK also when there are reasons.
  absl::Status Walk() {
    values_.model.producer =
        absl::StrCat(model_.producer_name(), model_.producer_version().empty() ? "" : " ",
                     model_.producer_version());
    if (!model_.has_graph()) return absl::InvalidArgumentError("the model has no graph");
    ASSIGN_OR_RETURN(const FlatModel flat, FlattenModel(model_, budget_));
    RETURN_IF_ERROR(CheckOpsets(flat));
    RETURN_IF_ERROR(initializers_.Add(model_.graph(), slim_, tensors_));
    for (const onnx::TensorProto& tensor : model_.graph().initializer()) {
      const ValueId id = values_.by_name.at(tensor.name());
      if (HoldsText(tensor)) texts_.Mark(id, TextKind::kText);
      float8_.Mark(id, tensor.data_type());
      nibbles_.Mark(id, tensor.data_type());
    }
    for (const onnx::SparseTensorProto& sparse : model_.graph().sparse_initializer()) {
      float8_.Mark(values_.by_name.at(sparse.values().name()), sparse.values().data_type());
    }
    RETURN_IF_ERROR(AddInputs(
        model_, ranks_, [&](const std::string& name) { return initializers_.IsUnread(name); },
        [&](const std::string& name) { sequences_.DefineUnknown(name); }, texts_, values_));
    for (const FlatNode& node : flat.nodes) RETURN_IF_ERROR(AddNode(node));
    return absl::OkStatus();
  }

  absl::Status CheckOpsets(const FlatModel& flat) {
    const OpsetMap& opsets = flat.opsets.front();
    examined_.versions = opsets;
    const auto it = opsets.find("");
    if (it != opsets.end() && it->second > kNewestOpset) {
      values_.reasons.Add(absl::StatusCode::kUnimplemented,
                          absl::StrCat("opset ", it->second, " is newer than ", kNewestOpset));
    }
    if (it != opsets.end() && it->second < 1) {
      return absl::InvalidArgumentError(absl::StrCat("there is no opset ", it->second));
    }
    return absl::OkStatus();
  }

  // Keeps the type that the file states for a value: for dtypes after a node that is refused.
  void Declare(const onnx::ValueInfoProto& info) {
    auto io = DeclaredType(info);
    if (io.ok()) examined_.declared.emplace(info.name(), *std::move(io));
  }

  absl::Status AddNode(const FlatNode& flat) {
    const onnx::NodeProto& proto = *flat.proto;
    const std::string domain = CanonicalDomain(proto.domain());
    NodeDraft draft;
    draft.types = &types_;
    draft.op = OpName(proto);
    draft.name = proto.name();
    const auto version = flat.opsets->find(domain);
    draft.version = version == flat.opsets->end() ? 1 : version->second;
    for (const std::string& name : proto.input()) {
      // An input that is no tensor is looked up by the walk over sequences.
      const auto it = values_.by_name.find(name);
      draft.inputs.push_back(it == values_.by_name.end() ? kNone : it->second);
    }
    while (!draft.inputs.empty() && draft.inputs.back() == kNone) draft.inputs.pop_back();
    draft.outputs.assign(proto.output().begin(), proto.output().end());
    // How many there are says in how many parts a Split cuts.
    while (!draft.outputs.empty() && draft.outputs.back().empty() && draft.op != SplitOp::kName) {
      draft.outputs.pop_back();
    }

    const std::vector<ValueId> inputs = draft.inputs;
    const std::vector<std::string> outputs = draft.outputs;
    const NodeId first = static_cast<NodeId>(graph_.num_nodes());
    const auto first_value = static_cast<ValueId>(graph_.num_values());
    const size_t first_parameter = values_.model.parameters.size();
    const absl::Status status =
        version == flat.opsets->end() && domain.empty() && !flat.is_control
            ? absl::InvalidArgumentError("the model imports no opset of this domain")
        : sequences_.Concerns(flat) ? AddOverSequences(flat)
        : flat.is_control           ? AddControl(proto, draft)
                                    : Convert(proto, draft);
    LabelSteps(first, flat.source == nullptr ? proto : *flat.source);
    RETURN_IF_ERROR(budget_.TakeBytes(BytesMade(first_value, first_parameter), Label(proto)));
    if (status.ok()) return absl::OkStatus();
    if (!FileValues::IsReason(status)) {
      return absl::Status(status.code(), absl::StrCat(Label(proto), ": ", status.message()));
    }
    examined_.nodes.push_back(
        {.code = status.code(),
         .reason = {.op = proto.op_type(),
                    .domain = domain,
                    .version = version == flat.opsets->end() ? 0 : version->second,
                    .node = NodeName(proto.name(), outputs.empty() ? "" : outputs.front()),
                    .why = std::string(status.message())},
         .inputs = inputs});
    // The import fails in the end; the results are defined so that the walk can go on.
    if (sequences_.Concerns(flat)) sequences_.DefineUnknownResults(flat);
    for (const std::string& name : outputs) {
      if (name.empty() || values_.by_name.contains(name)) continue;
      RETURN_IF_ERROR(values_.Define(name, graph_.AddInput(name, DType::kUndefined, {})));
    }
    return absl::OkStatus();
  }

  // Counts the bytes of the constants and parameters from these on: weights of the file, and tables
  // of steps.
  int64_t BytesMade(ValueId first, size_t first_parameter) const {
    int64_t bytes = 0;
    for (auto id = first; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind == Value::Kind::kConstant) {
        bytes += static_cast<int64_t>(value.constant.bytes());
      }
    }
    const std::vector<Tensor>& parameters = values_.model.parameters;
    for (size_t i = first_parameter; i < parameters.size(); ++i) {
      bytes += static_cast<int64_t>(parameters[i].bytes());
    }
    return bytes;
  }

  // Labels the steps that `proto` was rewritten to, nodes from `first` on, with its name and op.
  void LabelSteps(NodeId first, const onnx::NodeProto& proto) {
    const NodeId end = static_cast<NodeId>(graph_.num_nodes());
    const std::string op = OpName(proto);
    if (first == end || (end - first == 1 && graph_.node(first).op == op)) return;
    std::string name = proto.name();
    for (int i = 0; name.empty() && i < proto.output_size(); ++i) name = proto.output(i);
    for (NodeId id = first; id < end; ++id) graph_.SetSource(id, op, name);
  }

  absl::Status Convert(const onnx::NodeProto& proto, NodeDraft& draft) {
    if (draft.op == "Constant") {
      ASSIGN_OR_RETURN(const Attributes attributes, ReadAttributes(proto, tensors_));
      ASSIGN_OR_RETURN(Tensor value, ConstantValue(attributes, *texts_.vocabulary()));
      if (draft.outputs.size() != 1) return absl::InvalidArgumentError("has not one output");
      const ValueId id = values_.AddTensor(draft.outputs[0], std::move(value));
      if (IsTextConstant(proto)) texts_.Mark(id, TextKind::kText);
      for (const onnx::AttributeProto& attribute : proto.attribute()) {
        float8_.Mark(id, attribute.has_sparse_tensor()
                             ? attribute.sparse_tensor().values().data_type()
                             : attribute.t().data_type());
      }
      return values_.Define(draft.outputs[0], id);
    }
    // Ops that we lack are refused before their attributes are read. No op of a domain has a dot in
    // its name: 'microsoft.Gelu' of the domain 'com' is not com.microsoft's.
    const bool dotted = proto.op_type().find('.') != std::string::npos;
    if (dotted || (Row(draft.op) == nullptr && !HasRewrite(draft))) {
      return absl::UnimplementedError(
          absl::StrCat("is not supported", IsForeign(proto.domain()) ? kHowToBringAnOp : ""));
    }
    ASSIGN_OR_RETURN(draft.attributes, ReadAttributes(proto, tensors_));
    draft.texts = texts_.TextsOf(proto, draft);
    ASSIGN_OR_RETURN(const std::vector<TextKind> kinds, texts_.Results(draft, graph_));
    const std::vector<std::string> outputs = draft.outputs;  // a rewrite may change their order
    const size_t known = graph_.num_values();
    int64_t float8 = 0;
    ASSIGN_OR_RETURN(const bool from_float8, float8_.Convert(proto, draft, float8));
    int64_t nibbles = 0;
    ASSIGN_OR_RETURN(const bool from_nibbles, nibbles_.Convert(draft, nibbles));
    const bool rewritten = from_float8 || from_nibbles || HasRewrite(draft);
    RETURN_IF_ERROR(RewriteToNewest(draft, graph_));
    values_.MakeParameters(static_cast<ValueId>(known));
    // A rewrite may end in an op of ours.
    const OpRow* row = rewritten ? FindOp(draft.op) : Row(draft.op);
    if (row == nullptr) return absl::UnimplementedError("is not supported");
    RETURN_IF_ERROR(CheckCount("inputs", draft.inputs.size(), row->min_inputs, row->max_inputs));
    RETURN_IF_ERROR(CheckCount("outputs", draft.outputs.size(), 0, row->max_outputs));
    const bool named = NameFirstResult(draft);
    RETURN_IF_ERROR(AddDraft(draft, named ? 1 : 0));
    MarkTexts(outputs, kinds);
    for (const std::string& name : outputs) {
      const auto it = values_.by_name.find(name);
      if (it == values_.by_name.end()) continue;
      float8_.Mark(it->second, float8);
      nibbles_.Mark(it->second, nibbles);
    }
    return absl::OkStatus();
  }

  // Names the first result where a model leaves it out and reads another one, since rules and
  // kernels may count on it; not for recurrent layers, whose first result is large. Returns true
  // where it got a name, which no value of the file has.
  static bool NameFirstResult(NodeDraft& draft) {
    const bool recurrent =
        draft.op == LstmOp::kName || draft.op == GruOp::kName || draft.op == RnnOp::kName;
    if (recurrent || draft.outputs.empty() || !draft.outputs[0].empty()) return false;
    const auto read =
        absl::c_find_if(draft.outputs, [](const auto& name) { return !name.empty(); });
    if (read == draft.outputs.end()) return false;
    draft.outputs[0] = absl::StrCat(*read, " (first result)");
    return true;
  }

  // Adds a node that flattening made, in the form of the op table.
  absl::Status AddControl(const onnx::NodeProto& proto, NodeDraft& draft) {
    ASSIGN_OR_RETURN(draft.attributes, ReadAttributes(proto, tensors_));
    ASSIGN_OR_RETURN(const std::vector<TextKind> kinds, texts_.ResultsOfControl(draft));
    RETURN_IF_ERROR(float8_.Refuse(draft.inputs));
    RETURN_IF_ERROR(AddDraft(draft));
    MarkTexts(draft.outputs, kinds);
    return absl::OkStatus();
  }

  void MarkTexts(const std::vector<std::string>& outputs, const std::vector<TextKind>& kinds) {
    for (size_t i = 0; i < std::min(outputs.size(), kinds.size()); ++i) {
      const auto it = values_.by_name.find(outputs[i]);
      if (it != values_.by_name.end()) texts_.Mark(it->second, kinds[i]);
    }
  }

  // `first`: of the outputs that the file knows.
  absl::Status AddDraft(NodeDraft& draft, size_t first = 0) {
    draft.made.resize(draft.outputs.size(), kNone);
    std::vector<std::string> given = draft.outputs;
    for (size_t i = 0; i < given.size(); ++i) {
      if (draft.made[i] != kNone) given[i].clear();
    }
    const NodeId node = graph_.AddNodeWithOutputs(draft.op, std::move(draft.inputs),
                                                  std::move(draft.attributes), given, draft.name);
    for (size_t i = first; i < draft.outputs.size(); ++i) {
      if (draft.outputs[i].empty()) continue;
      const ValueId made = draft.made[i];
      RETURN_IF_ERROR(
          values_.Define(draft.outputs[i], made != kNone ? made : graph_.node(node).outputs[i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddOverSequences(const FlatNode& flat) {
    for (const std::string& name : flat.proto->input()) {
      const auto it = values_.by_name.find(name);
      if (it != values_.by_name.end()) RETURN_IF_ERROR(float8_.Refuse({it->second}));
      if (it == values_.by_name.end() || texts_.KindOf(it->second) == TextKind::kNumbers) continue;
      return absl::UnimplementedError(
          absl::StrCat("'", name, "' is text: sequences of text are not supported"));
    }
    ASSIGN_OR_RETURN(const std::vector<SequenceWalk::Named> results, sequences_.Resolve(flat));
    for (const auto& [name, id] : results) RETURN_IF_ERROR(values_.Define(name, id));
    return absl::OkStatus();
  }

  static const OpRow* Row(absl::string_view op) {
    const OpRow* row = FindOp(op);
    return row != nullptr && row->Has(kInternal) ? nullptr : row;
  }

  static absl::Status CheckCount(absl::string_view what, size_t have, int min, int max) {
    if (static_cast<int>(have) >= min && (max < 0 || static_cast<int>(have) <= max)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("has ", have, " ", what, ", takes ", min, " to ",
                     max < 0 ? std::string("any number") : absl::StrCat(max)));
  }

  const onnx::ModelProto& model_;
  const SlimModel& slim_;
  LoadBudget& budget_;
  TextWalk texts_;
  TensorReader tensors_;
  FileValues values_;
  Graph& graph_ = values_.model.graph;
  Initializers initializers_{values_};
  GrowingTypes types_;  // types of the graph so far
  Float8Values float8_{graph_};
  NibbleValues nibbles_{graph_};
  SequenceWalk sequences_{graph_, values_.by_name};
  ExaminedModel examined_;  // nodes that are refused, versions, declarations
  InputRanks ranks_;        // the inputs that declare none have these
};

// The messages of a model file, of either kind.
struct ParsedModel {
  SlimModel slim;
  onnx::ModelProto model;
};

absl::StatusOr<ParsedModel> Parse(const std::string& path, const FileBytes& file) {
  ParsedModel parsed;
  if (GgufFile::Begins(file.bytes)) {
    ASSIGN_OR_RETURN(parsed.model, GgufAsOnnx(path, file));
    return parsed;
  }
  ASSIGN_OR_RETURN(parsed.slim, SlimDown(file.bytes));
  if (!parsed.model.ParseFromString(parsed.slim.bytes)) {
    return absl::InvalidArgumentError("the model file is damaged or not an ONNX file");
  }
  return parsed;
}

// Calls `use(importer)` with an importer of `file`.
template <typename Use>
auto WithImporter(const std::string& path, FileBytes file, LoadBudget* given, Use use)
    -> decltype(use(std::declval<ModelImporter&>())) {
  LoadBudget own(static_cast<int64_t>(file.bytes.size()));
  LoadBudget& budget = given == nullptr ? own : *given;
  ASSIGN_OR_RETURN(ParsedModel parsed, Parse(path, file));
  RepeatPiecesAtOnce(parsed.model, parsed.slim.raw_data);
  CarryGrownListsAsTensors(parsed.model);
  ModelImporter importer(parsed.model, parsed.slim, path, std::move(file), budget);
  return use(importer);
}

absl::StatusOr<ImportedModel> Import(const std::string& path, FileBytes file,
                                     LoadBudget* budget = nullptr, const InputRanks& ranks = {}) {
  return WithImporter(path, std::move(file), budget, [&](ModelImporter& importer) {
    importer.SetRanks(ranks);
    return importer.Run();
  });
}

}  // namespace

absl::string_view TypeText(const ModelIo& io) { return io.text ? "text" : DTypeName(io.dtype); }

std::string DTypesText(const Graph& graph, const std::vector<ValueId>& values,
                       const HashSet<ValueId>& texts) {
  std::string text = "(";
  for (const ValueId id : values) {
    if (text.size() > 1) text += ", ";
    const DType dtype = id == kNone ? DType::kUndefined : graph.value(id).dtype;
    absl::StrAppend(&text, id == kNone                  ? "_"
                           : texts.contains(id)         ? "text"
                           : dtype == DType::kUndefined ? "?"
                                                        : DTypeName(dtype));
  }
  return text + ")";
}

absl::StatusOr<ImportedModel> ImportOnnxFile(const std::string& path, LoadBudget* budget,
                                             const InputRanks& ranks) {
  ASSIGN_OR_RETURN(FileBytes file, MapFile(path));
  return Import(path, std::move(file), budget, ranks);
}

absl::StatusOr<std::vector<std::string>> InputsWithoutRank(const std::string& path) {
  ASSIGN_OR_RETURN(const FileBytes file, MapFile(path));
  ASSIGN_OR_RETURN(const ParsedModel parsed, Parse(path, file));
  return NamesWithoutRank(parsed.model.graph());
}

absl::StatusOr<ExaminedModel> ExamineOnnxFile(const std::string& path, const InputRanks& ranks) {
  ASSIGN_OR_RETURN(FileBytes file, MapFile(path));
  return WithImporter(path, std::move(file), /*given=*/nullptr, [&](ModelImporter& importer) {
    importer.SetRanks(ranks);
    return importer.Examine();
  });
}

absl::StatusOr<ImportedModel> ImportOnnxBytes(absl::string_view bytes) {
  return Import("", CopyBytes(bytes));
}

}  // namespace reprise
