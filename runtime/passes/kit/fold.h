// FoldNode: evaluating a node at compile time.
//
// Shared by Specialize, which folds on its walk, and by the passes, which fold the constants that
// their rewrites make.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// Folds the node: when every input of `node` is a constant (and not overridable), or the op looks
// at shapes alone and those are known, its results become constants, and true is returned. False,
// with the graph as it was, when something is not known, when the op must not be folded, or when a
// result would take more than `max_bytes` or more steps than `work_left`, from which its own are
// taken (null: as many as a walk may take). INVALID_ARGUMENT when the operands are wrong.
absl::StatusOr<bool> FoldNode(Graph& graph, NodeId node, int64_t max_bytes,
                              double* work_left = nullptr);

// FoldAllowance: how much one walk over a graph folds. Once the constants take `total` bytes, or it
// has taken a second or so, only small ones are folded: the sizes that shapes are made of.
class FoldAllowance {
 public:
  // Bytes of constants up to which large ones are added to a graph.
  static constexpr int64_t kTotal = int64_t{192} << 20;
  // Elements that are read and multiplications that are done: about a second of plain loops.
  static constexpr double kMostWork = 1 << 30;

  // Constants that `graph` has already are a part of `total`: a graph is walked again and again.
  FoldAllowance(const Graph& graph, int64_t largest, int64_t total = kTotal);

  // FoldNode within the rest of the allowance.
  absl::StatusOr<bool> Fold(Graph& graph, NodeId node);

 private:
  const int64_t largest_;
  int64_t left_;
  double work_left_ = kMostWork;
};

}  // namespace reprise
