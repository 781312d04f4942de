// The subgraphs that nodes carry as attributes: branches of an If.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/onnx/onnx_proto.h"

namespace reprise {

using Rename = absl::FunctionRef<std::string(const std::string&)>;

// Renames what the subgraphs of `node` use of the graph around them, at any depth. What a subgraph
// defines itself keeps its name.
void RenameCaptured(onnx::NodeProto& node, Rename rename);

// Branch `name` of `node`. INVALID_ARGUMENT when it is missing, takes inputs or does not result in
// as many values as the node; UNIMPLEMENTED for what we lack in it.
absl::StatusOr<const onnx::GraphProto*> BranchOf(const onnx::NodeProto& node,
                                                 const std::string& name);

// A Constant node that results in `tensor` under the name `result`.
onnx::NodeProto ConstantNode(const onnx::TensorProto& tensor, const std::string& result);

}  // namespace reprise
