// SortNodes: the nodes of a file in an order in which every value is defined before it is used.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/structure/flatten.h"

namespace reprise {

// `MatMul '/encoder/MatMul'`: how messages name a node of the file; see NodeName.
std::string Label(const onnx::NodeProto& node);

// Sorts `nodes`, the nodes of `graph` after inlining; stable: of the nodes that may come next, the
// first in the file does. INVALID_ARGUMENT naming the node for values defined twice, used but never
// defined, or that depend on themselves.
absl::Status SortNodes(const onnx::GraphProto& graph, std::vector<FlatNode>& nodes);

}  // namespace reprise
