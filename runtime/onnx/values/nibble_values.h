// NibbleValues: which values of a file are integers of four bits, while its nodes are imported.
//
// The graph has no dtype of four bits: such a value is one of int8 or uint8 whose elements are
// numbers of four bits. Nodes that convert to them saturate or wrap there as ONNX says, nodes that
// only move elements take them as they are, and any other node is UNIMPLEMENTED.
//
// Ownership: borrows the graph. Threads: one caller.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

class NibbleValues {
 public:
  explicit NibbleValues(Graph& graph) : graph_(graph) {}

  // `onnx_type`: the type of a tensor of the file, whose value is `value`; ignored for other
  // dtypes.
  void Mark(ValueId value, int64_t onnx_type);
  // ONNX's number for the dtype of `value`; 0: it has more bits than four.
  int64_t TypeOf(ValueId value) const;

  // Rewrites `draft` for four bits: a node that converts to them becomes its steps, and true is
  // returned. `type` becomes the type of its results, 0 where they have more bits.
  absl::StatusOr<bool> Convert(NodeDraft& draft, int64_t& type);

 private:
  absl::Status Cast(NodeDraft& draft, int64_t to);
  absl::Status Quantize(NodeDraft& draft, int64_t type);

  Graph& graph_;
  HashMap<ValueId, int64_t> types_;
};

}  // namespace reprise
