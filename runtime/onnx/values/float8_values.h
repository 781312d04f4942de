// Float8Values: which values of a file are floats of eight bits, while its nodes are imported.
//
// The graph has no dtype of float8: such a value is one of uint8, its bits (ops/float8.h). Nodes
// that convert become the ops that know the form, nodes that only move elements take it as it is,
// and any other node over float8 is UNIMPLEMENTED.
//
// Ownership: borrows the graph. Threads: one caller.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

class Float8Values {
 public:
  explicit Float8Values(Graph& graph) : graph_(graph) {}

  // `onnx_type`: the type of a tensor of the file, whose value is `value`; ignored for other
  // dtypes.
  void Mark(ValueId value, int64_t onnx_type);
  // ONNX's number for the form of `value`; 0: it is none.
  int64_t FormOf(ValueId value) const;

  // Rewrites `draft`, the node `proto`, for float8: a node that converts becomes its steps, and
  // true is returned. `form` becomes the form of its results. UNIMPLEMENTED for unsupported
  // nodes.
  absl::StatusOr<bool> Convert(const onnx::NodeProto& proto, NodeDraft& draft, int64_t& form);
  // UNIMPLEMENTED where one of `inputs` is float8, naming its place.
  absl::Status Refuse(const std::vector<ValueId>& inputs) const;

 private:
  absl::Status Cast(NodeDraft& draft, int64_t from, int64_t to);
  absl::Status Dequantize(NodeDraft& draft);
  absl::Status Quantize(NodeDraft& draft, int64_t form);
  absl::Status CheckZeroPoint(ValueId point, int64_t form) const;

  Graph& graph_;
  HashMap<ValueId, int64_t> forms_;
};

}  // namespace reprise
