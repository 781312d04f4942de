#include "runtime/onnx/branches.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// `inner`: names that are defined in the subgraphs around.
void RenameIn(onnx::GraphProto& graph, Rename rename, std::set<std::string> inner) {
  for (const auto& input : graph.input()) inner.insert(input.name());
  for (const auto& tensor : graph.initializer()) inner.insert(tensor.name());
  for (const auto& node : graph.node()) inner.insert(node.output().begin(), node.output().end());
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_input()) {
      if (!name.empty() && !inner.contains(name)) name = rename(name);
    }
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) RenameIn(*attribute.mutable_g(), rename, inner);
    }
  }
  // A branch may hand a value from outside through.
  for (auto& output : *graph.mutable_output()) {
    if (!inner.contains(output.name())) output.set_name(rename(output.name()));
  }
}

}  // namespace

void RenameCaptured(onnx::NodeProto& node, Rename rename) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) RenameIn(*attribute.mutable_g(), rename, {});
  }
}

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
    for (const auto& output : graph.output()) {
      if (!output.name().empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(label(), " has a result without a name"));
    }
    if (graph.sparse_initializer_size() > 0) {
      return absl::UnimplementedError(absl::StrCat(label(), " holds sparse tensors"));
    }
    return &graph;
  }
  return absl::InvalidArgumentError(absl::StrCat(label(), " is missing"));
}

onnx::NodeProto ConstantNode(const onnx::TensorProto& tensor, const std::string& result) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  node.set_name(result);
  node.add_output(result);
  onnx::AttributeProto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = tensor;
  return node;
}

}  // namespace reprise
