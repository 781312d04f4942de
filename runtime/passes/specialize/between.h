// GraphBetween: a rewritten graph at other sizes, interpolated from two.
//
// A capture spends most of its time in passes, and their result for a model is the same graph at
// most sizes except for the numbers in it: dims, and constants that are dims. Two such graphs tell
// how each number depends on the axes; where that is a straight line along one of them, the graph
// at the sizes in between is known without a pass. A node that was joined, split or left out at one
// of the two sizes alone makes the graphs differ, and nothing is concluded.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// A graph that the capture passes have left, and the sizes that it was made for.
struct RewrittenAt {
  const Graph& graph;
  const Binding& binding;
};

// Returns the graph at `wanted`, sizes of the same axes; its shapes are inferred again and must
// equal the ones on the straight lines. NOT_FOUND where the two are not one graph, or a number of
// it is on no line.
absl::StatusOr<Graph> GraphBetween(const RewrittenAt& low, const RewrittenAt& high,
                                   const Binding& wanted);

}  // namespace reprise
