// The subgraphs that nodes carry as attributes: branches of an If, bodies of loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

using Rename = absl::FunctionRef<std::string(const std::string&)>;

// Renames the values that the subgraphs of `node` use of the graph around them, at any depth.
// Values that a subgraph defines itself get `prefix`, so that they do not hide values with the new
// names.
void RenameCaptured(onnx::NodeProto& node, Rename rename, const std::string& prefix = "");

// Returns branch `name` of `node`. INVALID_ARGUMENT when it is missing, takes inputs or has
// another number of results than the node; UNIMPLEMENTED for anything in it that we lack.
absl::StatusOr<const onnx::GraphProto*> BranchOf(const onnx::NodeProto& node,
                                                 const std::string& name);

// Returns the body of a Loop or Scan. INVALID_ARGUMENT when it is missing, does not take `inputs`
// values, or results in fewer than `least_results`; UNIMPLEMENTED for anything in it that we lack.
absl::StatusOr<const onnx::GraphProto*> BodyOf(const onnx::NodeProto& node, int inputs,
                                               int least_results);

// Attribute `name` of `node` as integers; `fallback` where it is absent.
std::vector<int64_t> IntsOf(const onnx::NodeProto& node, absl::string_view name,
                            std::vector<int64_t> fallback = {});
void SetInts(onnx::NodeProto& node, absl::string_view name, absl::Span<const int64_t> values);

// Returns a Constant node that results in `tensor` under the name `result`.
onnx::NodeProto ConstantNode(const onnx::TensorProto& tensor, const std::string& result);
onnx::NodeProto ConstantNode(const onnx::SparseTensorProto& tensor, const std::string& result);

}  // namespace reprise
