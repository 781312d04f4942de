// Numbers that a model computes from the length of its past become numbers computed from positions.
//
// An exporter may count positions from the shape of a cache: Range(past, past + new), a sum over a
// mask, a table cut there. At one length of the past such numbers are constants. Those that differ
// between two lengths and are read by what computes on data are computed again from
// reprise.positions, by the nodes that the model has for it.
//
// Ownership: borrows the graph. Threads: pure.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// A graph specialised with some length of the past.
struct PastTrace {
  int64_t past = 0;
  SpecializeTrace trace;
};

// `positions`: the value of `graph` that holds the positions, i64[tokens]. Both traces are of
// graphs with the ids of `graph`.
absl::Status ComputeFromPositions(Graph& graph, ValueId positions, const PastTrace& a,
                                  const PastTrace& b);

// The rows of the smallest table that is looked up by positions; 0: there is none.
int64_t PositionsOfTables(const Graph& graph, ValueId positions);

}  // namespace reprise
