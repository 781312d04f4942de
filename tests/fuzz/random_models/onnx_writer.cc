#include "tests/fuzz/random_models/onnx_writer.h"

#include <set>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/kit/onnx_types.h"

namespace reprise::fuzz {
namespace {

constexpr int64_t kOpset = 28, kIrVersion = 10;
constexpr char kMicrosoft[] = "com.microsoft.";

void WriteTensor(const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_data_type(static_cast<int32_t>(ops::OnnxNumber(tensor.dtype())));
  for (const int64_t size : tensor.shape()) proto.add_dims(size);
  proto.set_raw_data(tensor.data(), tensor.bytes());
}

void WriteElementType(DType dtype, onnx::ValueInfoProto& info) {
  info.mutable_type()->mutable_tensor_type()->set_elem_type(
      static_cast<int32_t>(ops::OnnxNumber(dtype)));
}

void WriteType(DType dtype, const std::vector<Dim>& dims, onnx::ValueInfoProto& info) {
  WriteElementType(dtype, info);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->mutable_shape();
  for (const Dim& dim : dims) {
    auto* proto = type->mutable_shape()->add_dim();
    if (dim.is_constant()) {
      proto->set_dim_value(dim.size);
    } else if (!absl::StrContains(dim.symbol, ':')) {  // That is the importer's, of unnamed dims.
      proto->set_dim_param(dim.symbol.substr(0, dim.symbol.find('~')));
    }
  }
}

struct AttributeWriter {
  onnx::AttributeProto& proto;

  void operator()(int64_t value) const {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) const {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) const {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto.set_type(onnx::AttributeProto::INTS);
    proto.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    proto.set_type(onnx::AttributeProto::FLOATS);
    proto.mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) proto.add_strings(value);
  }
  void operator()(const Tensor& tensor) const {
    proto.set_type(onnx::AttributeProto::TENSOR);
    WriteTensor(tensor, *proto.mutable_t());
  }
  void operator()(const std::shared_ptr<const Graph>&) const {
    REPRISE_CHECK(false);  // Drawn models are flat.
  }
};

class Writer {
 public:
  Writer(const Graph& graph, const std::map<std::string, std::vector<Dim>>& declared)
      : graph_(graph), declared_(declared), order_(graph.NodeIds()) {}

  std::string Write() {
    onnx::ModelProto model;
    model.set_ir_version(kIrVersion);
    for (const auto& [domain, version] : {std::pair("", kOpset), {"com.microsoft", int64_t{1}}}) {
      auto* import = model.add_opset_import();
      import->set_domain(domain);
      import->set_version(version);
    }
    onnx::GraphProto& proto = *model.mutable_graph();
    proto.set_name("random");
    for (const ValueId id : graph_.inputs()) {
      const Value& value = graph_.value(id);
      proto.add_input()->set_name(value.name);
      WriteType(value.dtype, value.dims, *proto.mutable_input(proto.input_size() - 1));
    }
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      if (graph_.value(id).kind != Value::Kind::kConstant) continue;
      onnx::TensorProto& tensor = *proto.add_initializer();
      tensor.set_name(graph_.value(id).name);
      WriteTensor(graph_.value(id).constant, tensor);
    }
    const std::set<NodeId> all(order_.begin(), order_.end());
    WriteNodes(all, proto);
    for (const ValueId id : graph_.outputs()) {
      onnx::ValueInfoProto& output = *proto.add_output();
      output.set_name(graph_.value(id).name);
      const auto dims = declared_.find(graph_.value(id).name);
      if (dims != declared_.end()) {
        WriteType(graph_.value(id).dtype, dims->second, output);
      } else {
        WriteElementType(graph_.value(id).dtype, output);
      }
    }
    return model.SerializeAsString();
  }

 private:
  std::string NameOf(ValueId id) const { return id == kNone ? "" : graph_.value(id).name; }

  // Returns the nodes of `scope` that only `results`, operands of `owner`, need.
  std::set<NodeId> NeededBy(const std::vector<ValueId>& results, NodeId owner, size_t first,
                            const std::set<NodeId>& scope) const {
    const Node& node = graph_.node(owner);
    const auto elsewhere = [&](ValueId id) {  // an operand of the owner outside of `results`
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == id && (i < first || i >= first + results.size())) return true;
      }
      return false;
    };
    std::set<NodeId> needed;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      if (!scope.contains(*it) || *it == owner) continue;
      bool inside = false, outside = false;
      for (const ValueId id : graph_.node(*it).outputs) {
        if (id == kNone) continue;
        outside = outside || graph_.IsOutput(id) || elsewhere(id);
        for (const NodeId user : graph_.value(id).users) {
          (needed.contains(user) || user == owner ? inside : outside) = true;
        }
      }
      if (inside && !outside) needed.insert(*it);
    }
    return needed;
  }

  // The nodes of `scope`, those that lie in the subgraphs of others of it within these.
  void WriteNodes(const std::set<NodeId>& scope, onnx::GraphProto& proto) {
    std::set<NodeId> within;
    std::vector<std::vector<std::set<NodeId>>> parts;  // one an If or a Loop
    std::vector<NodeId> owners;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      const Node& node = graph_.node(*it);
      if (!scope.contains(*it) || within.contains(*it)) continue;
      if (node.op != "If" && node.op != "Loop") continue;
      owners.push_back(*it);
      parts.push_back(PartsOf(*it, scope));
      for (const auto& part : parts.back()) within.insert(part.begin(), part.end());
    }
    for (const NodeId id : order_) {
      if (!scope.contains(id) || within.contains(id)) continue;
      if (graph_.node(id).op == "reprise.LoopStep")
        continue;  // Its results are inputs of the body.
      onnx::NodeProto& node = *proto.add_node();
      const auto owner = std::find(owners.begin(), owners.end(), id);
      if (owner == owners.end()) {
        WriteNode(graph_.node(id), graph_.node(id).inputs, node);
      } else if (graph_.node(id).op == "If") {
        WriteIf(graph_.node(id), parts[owner - owners.begin()], node);
      } else {
        WriteLoop(graph_.node(id), parts[owner - owners.begin()], node);
      }
    }
  }

  std::vector<std::set<NodeId>> PartsOf(NodeId owner, const std::set<NodeId>& scope) const {
    const Node& node = graph_.node(owner);
    if (node.op == "Loop") {
      const size_t first = LoopParts(node).first_result;
      return {NeededBy(BodyResults(node), owner, first, scope)};
    }
    const size_t results = node.outputs.size();
    std::vector<std::set<NodeId>> parts;
    for (const size_t first : {size_t{1}, 1 + results}) {
      const auto begin = node.inputs.begin() + static_cast<std::ptrdiff_t>(first);
      parts.push_back(
          NeededBy({begin, begin + static_cast<std::ptrdiff_t>(results)}, owner, first, scope));
    }
    return parts;
  }

  void WriteNode(const Node& node, const std::vector<ValueId>& inputs, onnx::NodeProto& proto) {
    const bool microsoft = absl::StartsWith(node.op, kMicrosoft);
    proto.set_op_type(microsoft ? node.op.substr(sizeof(kMicrosoft) - 1) : node.op);
    if (microsoft) proto.set_domain("com.microsoft");
    for (const ValueId id : inputs) proto.add_input(NameOf(id));
    for (const ValueId id : node.outputs) proto.add_output(NameOf(id));
    proto.set_name(absl::StrCat("make_", NameOf(node.outputs.empty() ? kNone : node.outputs[0])));
    if (node.op == "If" || node.op == "Loop") return;
    for (const auto& [name, value] : node.attributes) {
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(name);
      std::visit(AttributeWriter{attribute}, value);
    }
  }

  onnx::GraphProto& AddSubgraph(onnx::NodeProto& node, const char* name) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->set_name(name);
    return *attribute.mutable_g();
  }

  void WriteIf(const Node& node, const std::vector<std::set<NodeId>>& parts,
               onnx::NodeProto& proto) {
    WriteNode(node, {node.inputs[0]}, proto);
    const size_t results = node.outputs.size();
    for (const size_t branch : {0, 1}) {
      onnx::GraphProto& graph = AddSubgraph(proto, branch == 0 ? "then_branch" : "else_branch");
      WriteNodes(parts[branch], graph);
      for (size_t i = 0; i < results; ++i) {
        graph.add_output()->set_name(NameOf(node.inputs[1 + branch * results + i]));
      }
    }
  }

  void WriteLoop(const Node& node, const std::vector<std::set<NodeId>>& parts,
                 onnx::NodeProto& proto) {
    const LoopParts loop(node);
    WriteNode(node, {node.inputs.begin(), node.inputs.begin() + loop.first_result}, proto);
    onnx::GraphProto& body = AddSubgraph(proto, "body");
    const NodeId step = StepOf(graph_, node);
    for (size_t i = 0; i < 2 + loop.carried; ++i) {
      const ValueId given = step == kNone ? kNone : graph_.node(step).output(i);
      const std::string made_up = absl::StrCat(NameOf(node.outputs[0]), "_given_", i);
      onnx::ValueInfoProto& input = *body.add_input();
      input.set_name(given == kNone ? made_up : NameOf(given));
      WriteElementType(i == 0   ? DType::kInt64
                       : i == 1 ? DType::kBool
                                : graph_.value(node.inputs[i]).dtype,
                       input);
    }
    WriteNodes(parts[0], body);
    for (const ValueId id : BodyResults(node)) body.add_output()->set_name(NameOf(id));
  }

  const Graph& graph_;
  const std::map<std::string, std::vector<Dim>>& declared_;
  const std::vector<NodeId> order_;  // topological
};

}  // namespace

std::string OnnxBytes(const Graph& graph, const std::map<std::string, std::vector<Dim>>& declared) {
  return Writer(graph, declared).Write();
}

}  // namespace reprise::fuzz
