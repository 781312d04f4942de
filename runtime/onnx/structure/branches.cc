#include "runtime/onnx/structure/branches.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// `inner`: names that are defined in the subgraphs around.
void RenameIn(onnx::GraphProto& graph, const std::string& prefix, Rename rename,
              std::set<std::string> inner) {
  for (const auto& input : graph.input()) inner.insert(input.name());
  for (const auto& tensor : graph.initializer()) inner.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) inner.insert(sparse.values().name());
  for (const auto& node : graph.node()) inner.insert(node.output().begin(), node.output().end());
  inner.erase("");
  const auto new_name = [&](const std::string& name) {
    if (name.empty()) return name;
    return inner.contains(name) ? absl::StrCat(prefix, name) : rename(name);
  };
  for (auto& input : *graph.mutable_input()) input.set_name(new_name(input.name()));
  for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(new_name(tensor.name()));
  for (auto& sparse : *graph.mutable_sparse_initializer()) {
    sparse.mutable_values()->set_name(new_name(sparse.values().name()));
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_input()) name = new_name(name);
    for (std::string& name : *node.mutable_output()) name = new_name(name);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) RenameIn(*attribute.mutable_g(), prefix, rename, inner);
    }
  }
  // A branch may hand a value from outside through.
  for (auto& output : *graph.mutable_output()) output.set_name(new_name(output.name()));
}

}  // namespace

void RenameCaptured(onnx::NodeProto& node, Rename rename, const std::string& prefix) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) RenameIn(*attribute.mutable_g(), prefix, rename, {});
  }
}

namespace {

// Checks the rules that every subgraph keeps to; `label` names it.
absl::Status CheckSubgraph(const onnx::GraphProto& graph, absl::string_view label) {
  for (const auto& output : graph.output()) {
    if (!output.name().empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(label, " has a result without a name"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const onnx::GraphProto*> BranchOf(const onnx::NodeProto& node,
                                                 const std::string& name) {
  const auto label = [&] { return absl::StrCat("If '", node.name(), "': ", name); };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != name || !attribute.has_g()) continue;
    const onnx::GraphProto& graph = attribute.g();
    if (graph.input_size() > 0) {
      return absl::InvalidArgumentError(absl::StrCat(label(), " takes inputs"));
    }
    if (graph.output_size() != node.output_size()) {
      return absl::InvalidArgumentError(absl::StrCat(label(), " has ", graph.output_size(),
                                                     " results, the node ", node.output_size()));
    }
    RETURN_IF_ERROR(CheckSubgraph(graph, label()));
    return &graph;
  }
  return absl::InvalidArgumentError(absl::StrCat(label(), " is missing"));
}

absl::StatusOr<const onnx::GraphProto*> BodyOf(const onnx::NodeProto& node, int inputs,
                                               int least_results) {
  const std::string label = absl::StrCat(node.op_type(), " '", node.name(), "': body");
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != "body" || !attribute.has_g()) continue;
    const onnx::GraphProto& graph = attribute.g();
    if (graph.input_size() != inputs) {
      return absl::InvalidArgumentError(absl::StrCat(label, " takes ", graph.input_size(),
                                                     " values, the node gives it ", inputs));
    }
    if (graph.output_size() < least_results) {
      return absl::InvalidArgumentError(absl::StrCat(
          label, " has ", graph.output_size(), " results, the node asks for ", least_results));
    }
    RETURN_IF_ERROR(CheckSubgraph(graph, label));
    for (const onnx::ValueInfoProto& input : graph.input()) {
      if (!input.type().has_sequence_type() && !input.type().has_optional_type()) continue;
      return absl::UnimplementedError(absl::StrCat(
          label, " carries '", input.name(),
          "', which is not a tensor: how many there are in it may change from turn to turn"));
    }
    return &graph;
  }
  return absl::InvalidArgumentError(absl::StrCat(label, " is missing"));
}

std::vector<int64_t> IntsOf(const onnx::NodeProto& node, absl::string_view name,
                            std::vector<int64_t> fallback) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.type() == onnx::AttributeProto::INT) return {attribute.i()};
    return {attribute.ints().begin(), attribute.ints().end()};
  }
  return fallback;
}

void SetInts(onnx::NodeProto& node, absl::string_view name, absl::Span<const int64_t> values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(onnx::AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
}

namespace {

// Returns a Constant without its attribute.
onnx::NodeProto EmptyConstant(const std::string& result) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  node.set_name(result);
  node.add_output(result);
  return node;
}

}  // namespace

onnx::NodeProto ConstantNode(const onnx::TensorProto& tensor, const std::string& result) {
  onnx::NodeProto node = EmptyConstant(result);
  onnx::AttributeProto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = tensor;
  return node;
}

onnx::NodeProto ConstantNode(const onnx::SparseTensorProto& tensor, const std::string& result) {
  onnx::NodeProto node = EmptyConstant(result);
  onnx::AttributeProto& value = *node.add_attribute();
  value.set_name("sparse_value");
  value.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *value.mutable_sparse_tensor() = tensor;
  return node;
}

}  // namespace reprise
