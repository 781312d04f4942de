// Values that a model computes from the length of its past become values computed from positions.
//
// An exporter may count positions from the shape of a cache, Range(past, past + new), or from a sum
// over a mask, and look up or compute all that follows for them. At one length of the past such
// values are the same for all tokens. Those that differ between two lengths, and are read by nodes
// that compute on tokens, are computed for each token from reprise.positions, by the nodes that the
// model has for them (row_values.h), of tables that are not cut to the length (whole_tables.h).
//
// Ownership: borrows the graph. Threads: pure.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/passes/paged/past_values.h"

namespace reprise {

struct PastTraces {
  PastTrace a, b;
  std::optional<PastTrace> longest;  // a trace at the longest past that is served
};

// `positions`: the value of `graph` that holds the positions, i64[tokens]. The traces are of graphs
// with the ids of `graph`. Returns the positions that the smallest table has whose elements are
// looked up each by itself; 0: there is none.
int64_t ComputeFromPositions(Graph& graph, ValueId positions, const PastTraces& traces);

// Returns the rows of the smallest table that is looked up by positions; 0: there is none.
int64_t PositionsOfTables(const Graph& graph, ValueId positions);

}  // namespace reprise
