#include "runtime/onnx/structure/repeated_pieces.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/onnx/structure/branches.h"
#include "runtime/onnx/structure/free_separator.h"
#include "runtime/onnx/structure/scope_nodes.h"

namespace reprise {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Numbers = std::vector<int64_t>;

constexpr int64_t kAxesAsInput = 13;  // opset from which Unsqueeze has its axes as an input
constexpr int kMaxIdentities = 8;

// `given`: its bytes, where data() is set; else they are in the message.
std::optional<Numbers> NumbersOf(const onnx::TensorProto& tensor, absl::string_view given = {}) {
  const absl::string_view raw = given.data() == nullptr ? tensor.raw_data() : given;
  if (tensor.dims_size() > 1 || tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    return std::nullopt;
  }
  const int64_t count = tensor.dims_size() == 0 ? 1 : tensor.dims(0);
  Numbers numbers;
  if (tensor.data_type() == onnx::TensorProto::BOOL) {
    if (raw.size() == 1 && count == 1) return Numbers{raw[0]};
    return tensor.int32_data_size() == 1 && count == 1
               ? std::optional(Numbers{tensor.int32_data(0)})
               : std::nullopt;
  }
  if (tensor.data_type() != onnx::TensorProto::INT64) return std::nullopt;
  if (raw.empty()) {
    numbers.assign(tensor.int64_data().begin(), tensor.int64_data().end());
  } else if (raw.size() % sizeof(int64_t) == 0) {
    numbers.resize(raw.size() / sizeof(int64_t));
    std::memcpy(numbers.data(), raw.data(), raw.size());
  }
  if (static_cast<int64_t>(numbers.size()) != count) return std::nullopt;
  return numbers;
}

// The nodes of a graph, of the graphs around it, and of their weights: where a name is defined.
struct Around {
  const Nodes* nodes = nullptr;
  const google::protobuf::RepeatedPtrField<onnx::TensorProto>* weights = nullptr;
  const Around* outer = nullptr;
  absl::Span<const absl::string_view> raw_data = {};  // bytes of `weights`

  const onnx::NodeProto* ProducerOf(const std::string& name) const {
    for (const Around* scope = this; scope != nullptr && !name.empty(); scope = scope->outer) {
      for (const onnx::NodeProto& node : *scope->nodes) {
        if (absl::c_linear_search(node.output(), name)) return &node;
      }
    }
    return nullptr;
  }
  const onnx::NodeProto* ProducerIf(const std::string& name, const char* op) const {
    const onnx::NodeProto* node = ProducerOf(name);
    return node != nullptr && IsOnnx(*node, op) ? node : nullptr;
  }
  // Returns the numbers of a constant, or of a constant after casts.
  std::optional<Numbers> Known(std::string name) const {
    for (int step = 0; step < kMaxIdentities; ++step) {
      const onnx::NodeProto* node = ProducerOf(name);
      if (node == nullptr) break;
      if (IsOnnx(*node, "Constant")) {
        for (const onnx::AttributeProto& value : node->attribute()) {
          if (value.name() == "value" && value.has_t()) return NumbersOf(value.t());
        }
        return std::nullopt;
      }
      if ((!IsOnnx(*node, "Identity") && !IsOnnx(*node, "Cast")) || node->input_size() != 1) {
        return std::nullopt;
      }
      name = node->input(0);
    }
    for (const Around* scope = this; scope != nullptr; scope = scope->outer) {
      for (int i = 0; scope->weights != nullptr && i < scope->weights->size(); ++i) {
        if (scope->weights->at(i).name() != name) continue;
        const auto place = static_cast<size_t>(i);
        return NumbersOf(scope->weights->at(i), place < scope->raw_data.size()
                                                    ? scope->raw_data[place]
                                                    : absl::string_view());
      }
    }
    return std::nullopt;
  }
};

// A Loop that repeats each piece of `source` along `axis`.
struct Repeat {
  std::string source;
  int64_t axis = 0;
  Numbers wide;    // the shape that the source with a dim after `axis` is expanded to
  Numbers result;  // the shape of the whole, for Reshape
};

class RepeatMatch {
 public:
  RepeatMatch(const onnx::NodeProto& loop, const onnx::GraphProto& body, const Around& around)
      : loop_(loop),
        body_(body),
        around_(around),
        inside_{&body.node(), &body.initializer(), &around} {}

  // `axis`: along which the pieces are joined.
  std::optional<Repeat> Find(int64_t axis) const {
    if (body_.input_size() != 3 || body_.output_size() != 2 || loop_.input_size() != 3 ||
        around_.ProducerIf(loop_.input(2), "SequenceEmpty") == nullptr || !NeverEnds()) {
      return std::nullopt;
    }
    const onnx::NodeProto* insert = inside_.ProducerIf(body_.output(1).name(), "SequenceInsert");
    if (insert == nullptr || insert->input(0) != body_.input(2).name() ||
        (insert->input_size() > 2 && !insert->input(2).empty())) {
      return std::nullopt;
    }
    const onnx::NodeProto* shaped = inside_.ProducerIf(insert->input(1), "Reshape");
    if (shaped == nullptr || IntOf(*shaped, "allowzero", 0) != 0) return std::nullopt;
    const std::optional<Numbers> result = inside_.Known(shaped->input(1));
    const onnx::NodeProto* expand = inside_.ProducerIf(shaped->input(0), "Expand");
    if (!result.has_value() || expand == nullptr) return std::nullopt;
    const onnx::NodeProto* unsqueeze = inside_.ProducerIf(expand->input(0), "Unsqueeze");
    if (unsqueeze == nullptr || unsqueeze->input_size() != 2 ||
        inside_.Known(unsqueeze->input(1)) != Numbers{axis + 1}) {
      return std::nullopt;
    }
    Repeat repeat = {.axis = axis, .result = *result};
    if (axis < 0 || axis >= static_cast<int64_t>(result->size()) || (*result)[axis] != -1) {
      return std::nullopt;
    }
    // A 0 after the axis would copy another dim than the whole has there.
    if (absl::c_any_of(absl::MakeSpan(*result).subspan(axis + 1),
                       [](int64_t size) { return size <= 0; })) {
      return std::nullopt;
    }
    std::string sizes;
    repeat.source = SplitOf(unsqueeze->input(0), axis, sizes);
    if (repeat.source.empty() || !ReadWide(expand->input(1), sizes, repeat)) return std::nullopt;
    return repeat;
  }

 private:
  // Returns whether each turn is followed by the next, until the last.
  bool NeverEnds() const {
    const auto is_true = [](const std::optional<Numbers>& known) {
      return known.has_value() && known->size() == 1 && known->front() != 0;
    };
    const std::string& given = loop_.input(1);
    if (!given.empty() && !is_true(around_.Known(given))) return false;
    return body_.output(0).name() == body_.input(1).name() ||
           is_true(inside_.Known(body_.output(0).name()));
  }

  // Returns the tensor whose piece `value` is, at the number of the turn, and the sizes of pieces.
  std::string SplitOf(const std::string& value, int64_t axis, std::string& sizes) const {
    const onnx::NodeProto* at = inside_.ProducerIf(value, "SequenceAt");
    if (at == nullptr || at->input(1) != body_.input(0).name()) return "";
    const onnx::NodeProto* split = around_.ProducerIf(at->input(0), "SplitToSequence");
    if (split == nullptr || split->input_size() != 2 || IntOf(*split, "axis", 0) != axis) return "";
    sizes = split->input(1);
    return split->input(0);
  }

  // Returns the count, where `counts` has it once for each turn, and `sizes` are that many ones.
  std::optional<int64_t> CountOf(const std::string& counts, const std::string& sizes) const {
    const onnx::NodeProto* ones = around_.ProducerIf(sizes, "ConstantOfShape");
    if (ones == nullptr) return std::nullopt;
    for (const onnx::AttributeProto& value : ones->attribute()) {
      if (value.name() == "value" && NumbersOf(value.t()) != Numbers{1}) return std::nullopt;
    }
    const onnx::NodeProto* shape = around_.ProducerIf(ones->input(0), "Shape");
    const onnx::NodeProto* expand = around_.ProducerIf(counts, "Expand");
    if (ones->attribute_size() != 1 || shape == nullptr || shape->input(0) != counts ||
        shape->attribute_size() > 0 || expand == nullptr || expand->input(1) != loop_.input(0)) {
      return std::nullopt;
    }
    const std::optional<Numbers> count = around_.Known(expand->input(0));
    if (!count.has_value() || count->size() != 1 || count->front() < 1) return std::nullopt;
    return count->front();
  }

  bool ReadWide(std::string shape, const std::string& sizes, Repeat& repeat) const {
    // -1, which keeps a dim, is replaced by 1 first.
    if (const onnx::NodeProto* where = inside_.ProducerIf(shape, "Where")) shape = where->input(2);
    const onnx::NodeProto* joined = inside_.ProducerIf(shape, "Concat");
    if (joined == nullptr || joined->input_size() != 3 || IntOf(*joined, "axis", 0) != 0) {
      return false;
    }
    std::string own_sizes;
    const std::string counts = SplitOf(joined->input(1), 0, own_sizes);
    const std::optional<int64_t> count = own_sizes == sizes ? CountOf(counts, sizes) : std::nullopt;
    std::optional<Numbers> before = inside_.Known(joined->input(0));
    const std::optional<Numbers> after = inside_.Known(joined->input(2));
    const auto axis = static_cast<size_t>(repeat.axis);
    if (!count.has_value() || !before.has_value() || !after.has_value() ||
        before->size() != axis + 1 || before->back() != 1 ||
        after->size() + axis + 1 != repeat.result.size()) {
      return false;
    }
    repeat.wide = *std::move(before);
    repeat.wide.push_back(*count);
    absl::c_copy(*after, std::back_inserter(repeat.wide));
    if (absl::c_any_of(repeat.wide, [](int64_t size) { return size < -1 || size == 0; })) {
      return false;
    }
    absl::c_replace(repeat.wide, -1, 1);
    return true;
  }

  const onnx::NodeProto& loop_;
  const onnx::GraphProto& body_;
  const Around& around_;
  const Around inside_;
};

// One graph's nodes, or a function's.
class PieceScope {
 public:
  PieceScope(Nodes& nodes, std::vector<std::string> results, const Around& around,
             const std::string& separator, int& made)
      : nodes_(nodes),
        results_(std::move(results)),
        around_(around),
        separator_(separator),
        made_(made) {}

  void Run() {
    const int count = nodes_.size();  // Nodes are added after those that are there.
    for (int i = 0; i < count; ++i) {
      ForEachGraphOf(*nodes_.Mutable(i), [&](onnx::GraphProto& graph) {
        const Around inside = {&graph.node(), &graph.initializer(), &around_};
        PieceScope(*graph.mutable_node(), ResultsOf(graph), inside, separator_, made_).Run();
      });
    }
    bool changed = false;
    for (int i = 0; i < count; ++i)
      changed |= IsOnnx(nodes_[i], "ConcatFromSequence") && Rewrite(i);
    if (changed) DropUnread();
  }

 private:
  bool Rewrite(int join) {
    const onnx::NodeProto node = nodes_[join];  // A copy: adding nodes moves them.
    const onnx::NodeProto* loop = around_.ProducerIf(node.input(0), "Loop");
    if (loop == nullptr || loop->output_size() != 1 || IntOf(node, "new_axis", 0) != 0) {
      return false;
    }
    for (const onnx::AttributeProto& body : loop->attribute()) {
      if (body.name() != "body" || !body.has_g()) continue;
      const auto repeat = RepeatMatch(*loop, body.g(), around_).Find(IntOf(node, "axis", 0));
      if (!repeat.has_value()) return false;
      const std::string apart = Add("Unsqueeze", {repeat->source, Constant({repeat->axis + 1})});
      const std::string wide = Add("Expand", {apart, Constant(repeat->wide)});
      const std::string shape = Constant(repeat->result);
      onnx::NodeProto& whole = *nodes_.Mutable(join);
      whole.set_op_type("Reshape");
      whole.clear_attribute();
      whole.clear_input();
      whole.add_input(wide);
      whole.add_input(shape);
      return true;
    }
    return false;
  }

  std::string Add(const char* op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& node = *nodes_.Add();
    node.set_op_type(op);
    for (const std::string& input : inputs) node.add_input(input);
    std::string result = absl::StrCat(op, separator_, "piece", made_++);
    node.set_name(result);
    node.add_output(result);
    return result;
  }

  std::string Constant(const Numbers& numbers) {
    onnx::TensorProto tensor;
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) tensor.add_int64_data(number);
    std::string result = absl::StrCat("Constant", separator_, "piece", made_++);
    *nodes_.Add() = ConstantNode(tensor, result);
    return result;
  }

  // Drops the loops and sequences that nothing reads any more.
  void DropUnread() {
    for (const char* op : {"Loop", "SplitToSequence", "SequenceEmpty"}) {
      for (int i = nodes_.size() - 1; i >= 0; --i) {
        if (IsOnnx(nodes_[i], op) && !IsRead(nodes_[i])) nodes_.DeleteSubrange(i, 1);
      }
    }
  }

  bool IsRead(const onnx::NodeProto& node) const {
    return absl::c_any_of(node.output(), [&](const std::string& output) {
      return absl::c_linear_search(results_, output) ||
             absl::c_any_of(nodes_,
                            [&](const onnx::NodeProto& user) { return UsesBy(user, output) > 0; });
    });
  }

  Nodes& nodes_;
  const std::vector<std::string> results_;
  const Around& around_;
  const std::string& separator_;
  int& made_;
};

}  // namespace

void RepeatPiecesAtOnce(onnx::ModelProto& model, absl::Span<const absl::string_view> raw_data) {
  const std::string separator = FreeSeparator(model);
  int made = 0;
  if (OnnxVersionIn(model.opset_import()) >= kAxesAsInput) {
    onnx::GraphProto& graph = *model.mutable_graph();
    const Around around = {&graph.node(), &graph.initializer(), nullptr, raw_data};
    PieceScope(*graph.mutable_node(), ResultsOf(graph), around, separator, made).Run();
  }
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    if (OnnxVersionIn(function.opset_import()) < kAxesAsInput) continue;
    std::vector<std::string> results(function.output().begin(), function.output().end());
    const Around around = {&function.node()};
    PieceScope(*function.mutable_node(), std::move(results), around, separator, made).Run();
  }
}

}  // namespace reprise
