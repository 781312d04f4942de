// HeadSource: where the heads of attention come from.
//
// Exporters move heads about in many ways between a projection and the nodes that work on heads.
// Followed upwards as a StridedView, whatever they do, a value [batch, heads, rows, size] is found
// again in one that has a row of all heads for each token.
//
// Ownership: values of the graph by id. Threads: as the graph's.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// Nodes that are followed from a value upwards.
inline constexpr int kMaxHeadSteps = 16;

// A value with the elements of [batch, heads, rows, size], or with the last two swapped.
struct HeadOperand {
  ValueId value;
  int64_t batch, heads, rows, size;
  bool swapped;
  bool scalable;  // a scale on it is a scale on the result of its use, and may be stepped over
};

// A value above an operand that holds the operand's elements, [tokens, width] with the operand's
// columns at `offset`.
struct HeadSource {
  ValueId value = kNone;
  int64_t width = 0;   // size of a token's row; heads * size when it holds nothing else
  int64_t offset = 0;  // where the operand begins in a row
  double scale = 1;    // the scale of the products between it and the operand
};

// Returns the node above `value` that a source may be found after, its operand and the scale it
// applies; kNone where there is none.
NodeId StepToHeads(const Graph& graph, ValueId value, bool scalable, ValueId* above, double* scale);

// Returns all sources of an operand of a specialised graph, the nearest first.
std::vector<HeadSource> FindHeadSources(const Graph& graph, const HeadOperand& operand);

// Returns the furthest source that holds nothing but the operand; null where there is none.
const HeadSource* PlainHeadSource(const std::vector<HeadSource>& sources,
                                  const HeadOperand& operand);

// [batch, rows, heads * size] of the operand: its columns of `source`, cut out where that has more.
absl::StatusOr<ValueId> AddTokens(Graph& graph, const HeadSource& source,
                                  const HeadOperand& operand);

}  // namespace reprise
