// ReadSizes: a symbolic graph at one size of each axis, and what that says of all others.
//
// The graph is walked once, as Specialize walks it, but its shapes are sizes with terms
// (shapes/size.h), and small integers that are computed of them as well. So one reading gives the
// shapes of all values for all sizes of its region: those for which every guard holds.
//
//   ASSIGN_OR_RETURN(const SizeReading reading, ReadSizes(graph, {.axes = {{"batch", 3}, ...}}));
//   SizeEvaluator at(*reading.table, {{"batch", 8}, {"sequence", 128}});
//   if (at.InRegion()) ... at.At((*reading.values[id].shape)[1]) ...
//
// Threads: a reading belongs to one thread at a time, since questions about its sizes are recorded.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"
#include "runtime/passes/read/known_value.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/region.h"
#include "runtime/shapes/size.h"
#include "runtime/shapes/term.h"

namespace reprise {

struct SizeReading {
  struct Value {
    DType dtype = DType::kUndefined;
    std::optional<SizeList> shape;    // none: the walk does not come to it
    std::optional<Tensor> constant;   // the same everywhere in the region
    std::optional<KnownValue> known;  // or computed of sizes
    bool determined = false;          // it follows from sizes, whether a term says how or not
    bool pinned = false;              // a constant at the hints alone, since a rule asked for it
  };
  std::unique_ptr<SizeTable> table;
  std::vector<Value> values;     // one a value of the symbolic graph
  std::vector<ValueId> outputs;  // the values that are the outputs of the graph in this region
  // A Gather reads at a known place that its data does not have: x[:, 1] of one token. No shape
  // tells.
  bool reads_beyond = false;
  int64_t evaluated = 0;  // bytes of tables, since a rule asked for a number without a term
};

// Reads `symbolic` into `reading`, which has a table and nothing else; `axes`: the size of each
// axis, in terms of that table. Errors: as the other one; the table says what was asked until then.
// In an open table what no rule says has terms as well (opaque_rules.h).
absl::Status ReadSizes(const Graph& symbolic, const std::map<std::string, Size>& axes,
                       const std::map<std::string, Tensor>& shape_inputs, SizeReading& reading);

// Reads `symbolic` at `hint`, whose shape inputs are constants. INVALID_ARGUMENT and
// FAILED_PRECONDITION where Specialize fails at that binding; limits of memory are not looked at.
absl::StatusOr<SizeReading> ReadSizes(const Graph& symbolic, const Binding& hint);
// Reads into `reading`, which has a table and nothing else: where it fails, the guards say for
// which other sizes it fails in the same way.
absl::Status ReadSizes(const Graph& symbolic, const Binding& hint, SizeReading& reading);

}  // namespace reprise
