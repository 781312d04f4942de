#include "runtime/onnx/structure/grown_lists.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/structure/flatten.h"
#include "runtime/onnx/structure/free_separator.h"
#include "runtime/onnx/structure/scope_nodes.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/reduce/reduce_op.h"

namespace reprise {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// How a list is joined after its Loop.
struct Join {
  int64_t axis = 0;
  bool new_axis = false;
  friend bool operator==(const Join&, const Join&) = default;
};

// One graph's nodes, or a function's.
class Scope {
 public:
  // `version`: of the opset. `is_result`: names that leave the scope.
  Scope(Nodes& nodes, std::vector<std::string> results, int64_t version,
        const std::string& separator, int& made)
      : nodes_(nodes),
        results_(std::move(results)),
        version_(version),
        separator_(separator),
        made_(made) {}

  void Run() {
    // Nodes are added after those that are there.
    const int count = nodes_.size();
    for (int i = 0; i < count; ++i) {
      ForEachGraphOf(*nodes_.Mutable(i), [&](onnx::GraphProto& graph) {
        Scope(*graph.mutable_node(), ResultsOf(graph), version_, separator_, made_).Run();
      });
      if (IsOnnx(nodes_[i], LoopOp::kName)) RewriteLoop(i);
    }
  }

 private:
  void RewriteLoop(int loop) {
    for (onnx::AttributeProto& attribute : *nodes_.Mutable(loop)->mutable_attribute()) {
      if (attribute.name() != "body" || !attribute.has_g()) continue;
      onnx::GraphProto& body = *attribute.mutable_g();
      for (int k = 0; 2 + k < body.input_size(); ++k) RewriteCarried(loop, body, k);
      return;
    }
  }

  void RewriteCarried(int loop, onnx::GraphProto& body, int k) {
    const onnx::NodeProto& node = nodes_[loop];
    const bool is_list = body.input(2 + k).type().has_sequence_type();
    if (!is_list || 2 + k >= node.input_size() || 1 + k >= body.output_size()) return;
    const std::string initial = node.input(2 + k);
    const onnx::NodeProto* begin = ProducerOf(initial);
    if (begin == nullptr) return;
    const bool is_empty = IsOnnx(*begin, "SequenceEmpty");
    if (!is_empty && !IsOnnx(*begin, "SequenceConstruct")) return;
    const auto join = JoinOf(loop, k < node.output_size() ? node.output(k) : "");
    const auto inserts = Inserts(body, k);
    if (!join.has_value() || !inserts.has_value()) return;

    const auto& elements = body.input(2 + k).type().sequence_type().elem_type().tensor_type();
    const int32_t declared = elements.elem_type();
    const auto dtype = declared != 0 || !is_empty
                           ? declared
                           : static_cast<int32_t>(IntOf(*begin, "dtype", onnx::TensorProto::FLOAT));
    for (onnx::ValueInfoProto* info : {body.mutable_input(2 + k), body.mutable_output(1 + k)}) {
      info->mutable_type()->Clear();
      info->mutable_type()->mutable_tensor_type()->set_elem_type(dtype);
    }
    for (const int at : *inserts) {
      const onnx::NodeProto insert = body.node(at);
      // The node is replaced where it stands, the last of its steps after all others.
      Append(*body.mutable_node(), insert, *join, at);
    }
    nodes_.Mutable(loop)->set_input(2 + k, Begin(initial, is_empty, dtype, *join));
    const std::string output = k < nodes_[loop].output_size() ? nodes_[loop].output(k) : "";
    for (onnx::NodeProto& user : nodes_) {
      if (output.empty() || !IsOnnx(user, "ConcatFromSequence") || user.input(0) != output)
        continue;
      user.set_op_type(IdentityOp::kName);
      user.clear_attribute();
    }
  }

  const onnx::NodeProto* ProducerOf(const std::string& name) const {
    for (const onnx::NodeProto& node : nodes_) {
      for (const std::string& output : node.output()) {
        if (!name.empty() && output == name) return &node;
      }
    }
    return nullptr;
  }

  // Returns how `list`, a result of node `loop`, is joined; nullopt where it is used otherwise.
  std::optional<Join> JoinOf(int loop, const std::string& list) const {
    std::optional<Join> join;
    for (const std::string& result : results_) {
      if (!list.empty() && result == list) return std::nullopt;
    }
    for (int i = 0; !list.empty() && i < nodes_.size(); ++i) {
      const onnx::NodeProto& node = nodes_[i];
      if (i == loop || UsesBy(node, list) == 0) continue;
      const Join own = {IntOf(node, "axis", 0), IntOf(node, "new_axis", 0) != 0};
      if (!IsOnnx(node, "ConcatFromSequence") || node.input_size() != 1 ||
          (join.has_value() && !(*join == own))) {
        return std::nullopt;
      }
      join = own;
    }
    return join.has_value() ? join : Join();
  }

  // Returns the nodes of `body` that insert into the carried value `k`, in their order;
  // nullopt where something else is done with it.
  static std::optional<std::vector<int>> Inserts(const onnx::GraphProto& body, int k) {
    std::vector<int> inserts;
    std::string list = body.input(2 + k).name();
    const std::string last = body.output(1 + k).name();
    for (int step = 0; step <= body.node_size(); ++step) {
      int user = -1, uses = 0;
      for (int i = 0; i < body.node_size(); ++i) {
        if (const int of_node = UsesBy(body.node(i), list); of_node > 0) {
          user = i;
          uses += of_node;
        }
      }
      for (const auto& output : body.output()) uses += output.name() == list ? 1 : 0;
      if (uses != 1) return std::nullopt;
      if (user < 0) return list == last ? std::optional(inserts) : std::nullopt;
      const onnx::NodeProto& node = body.node(user);
      const bool inserts_last = IsOnnx(node, "SequenceInsert") && node.input_size() >= 2 &&
                                (node.input_size() == 2 || node.input(2).empty());
      if ((!inserts_last && !IsOnnx(node, IdentityOp::kName)) || node.output_size() != 1 ||
          node.input(0) != list) {
        return std::nullopt;
      }
      if (inserts_last) inserts.push_back(user);
      list = node.output(0);
    }
    return std::nullopt;
  }

  std::string NewName(const std::string& of) {
    return absl::StrCat(of, separator_, "list", made_++);
  }

  // Adds a node of `nodes`; returns the name of its result.
  std::string Add(Nodes& nodes, const std::string& of, const char* op,
                  const std::vector<std::string>& inputs, onnx::NodeProto** added = nullptr) {
    onnx::NodeProto& node = *nodes.Add();
    node.set_op_type(op);
    node.set_name(of);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(NewName(of));
    if (added != nullptr) *added = &node;
    return node.output(0);
  }

  std::string Integers(Nodes& nodes, const std::string& of, const std::vector<int64_t>& numbers) {
    onnx::NodeProto* node = nullptr;
    std::string name = Add(nodes, of, "Constant", {}, &node);
    onnx::AttributeProto& value = *node->add_attribute();
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
    value.mutable_t()->add_dims(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) value.mutable_t()->add_int64_data(number);
    return name;
  }

  // Adds the tensor that the list begins as, and returns its name.
  std::string Begin(const std::string& initial, bool is_empty, int32_t dtype, const Join& join) {
    onnx::NodeProto* node = nullptr;
    if (!is_empty) {
      std::string joined = Add(nodes_, initial, "ConcatFromSequence", {initial}, &node);
      SetInt(*node, "axis", join.axis);
      SetInt(*node, "new_axis", join.new_axis ? 1 : 0);
      return joined;
    }
    std::string name = Add(nodes_, initial, "Constant", {}, &node);
    onnx::AttributeProto& value = *node->add_attribute();
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(dtype);
    value.mutable_t()->add_dims(0);
    return name;
  }

  // Appends the steps of node `at` of `nodes`, an insertion: the list so far, reshaped to be
  // joined with the piece (it begins as a vector without elements), and the piece after it.
  void Append(Nodes& nodes, const onnx::NodeProto& insert, const Join& join, int at) {
    const std::string &list = insert.input(0), &of = insert.output(0);
    std::string piece = insert.input(1);
    onnx::NodeProto* node = nullptr;
    if (join.new_axis && version_ >= 13) {
      piece = Add(nodes, of, UnsqueezeOp::kName, {piece, Integers(nodes, of, {join.axis})});
    } else if (join.new_axis) {
      piece = Add(nodes, of, UnsqueezeOp::kName, {piece}, &node);
      onnx::AttributeProto& axes = *node->add_attribute();
      axes.set_name("axes");
      axes.set_type(onnx::AttributeProto::INTS);
      axes.add_ints(join.axis);
    }
    const std::string before = Add(nodes, of, ShapeOp::kName, {piece}, &node);
    SetInt(*node, "end", join.axis);
    std::string after = Integers(nodes, of, {});
    if (join.axis != -1) {
      after = Add(nodes, of, ShapeOp::kName, {piece}, &node);
      SetInt(*node, "start", join.axis + 1);
    }
    const auto concat = [&](const std::vector<std::string>& parts, int64_t axis) {
      std::string name = Add(nodes, of, ConcatOp::kName, parts, &node);
      SetInt(*node, "axis", axis);
      return name;
    };
    const std::string each = Add(nodes, of, ReduceProdOp::kName, {concat({before, after}, 0)});
    const std::string divisor = Add(nodes, of, MaxOp::kName, {each, Integers(nodes, of, {1})});
    const std::string rows =
        Add(nodes, of, DivOp::kName, {Add(nodes, of, SizeOp::kName, {list}), divisor});
    const std::string shape = concat({before, rows, after}, 0);
    const std::string shaped = Add(nodes, of, ReshapeOp::kName, {list, shape}, &node);
    SetInt(*node, "allowzero", 1);
    onnx::NodeProto& joined = *nodes.Mutable(at);
    joined.set_op_type(ConcatOp::kName);
    joined.clear_input();
    joined.add_input(shaped);
    joined.add_input(piece);
    joined.clear_attribute();
    SetInt(joined, "axis", join.axis);
  }

  Nodes& nodes_;
  const std::vector<std::string> results_;
  const int64_t version_;
  const std::string& separator_;
  int& made_;
};

}  // namespace

void CarryGrownListsAsTensors(onnx::ModelProto& model) {
  const std::string separator = FreeSeparator(model);
  int made = 0;
  Scope(*model.mutable_graph()->mutable_node(), ResultsOf(model.graph()),
        OnnxVersionIn(model.opset_import()), separator, made)
      .Run();
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    std::vector<std::string> outputs(function.output().begin(), function.output().end());
    Scope(*function.mutable_node(), std::move(outputs), OnnxVersionIn(function.opset_import()),
          separator, made)
        .Run();
  }
}

}  // namespace reprise
