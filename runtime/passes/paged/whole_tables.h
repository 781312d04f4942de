// WholeTables: tables that a model cuts to the length of its whole sequence, uncut.
//
// Exporters cut tables of positions to as many rows as there are tokens, `cos[:past + new]`, or
// make them of that length, `Range(0, past + new)`, and look a token's row up in the result. As a
// row is the same in a longer table, each may be looked up in one table for all lengths.
//
// Ownership: borrows the graph. Threads: pure.
#pragma once

#include "runtime/base/hash_map.h"
#include "runtime/passes/paged/past_values.h"

namespace reprise {

class WholeTables {
 public:
  // `longest`: a trace at the longest past that is served; null: not known yet.
  WholeTables(Graph& graph, PastValues& values, const PastTrace* longest)
      : graph_(graph), values_(values), longest_(longest) {}

  // `value` with all of its rows, where it grows with the past by rows that stay as they are, and
  // `value` itself where it does not depend on the past. kNone: neither.
  ValueId Of(ValueId value);

 private:
  ValueId Computed(ValueId value, int64_t dim);

  Graph& graph_;
  PastValues& values_;
  const PastTrace* const longest_;
  HashMap<ValueId, ValueId> whole_;
};

// Returns the positions that tables have which are cut by the length of the past; 0: there is none.
int64_t PositionsOfCuts(const Graph& graph, const PastValues& values);

}  // namespace reprise
