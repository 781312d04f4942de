// KnownNumbers: the numbers that constants alone decide while a file is read, and the dims that it
// declares.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

// Returns the integers that `value` holds, where it is a constant or a few nodes over small
// constants; nullopt where a request decides it, random numbers do, or more work than that.
// Nothing is added to `graph`.
std::optional<std::vector<int64_t>> KnownNumbers(const Graph& graph, ValueId value);

// Returns how many dims `value` has; nullopt where the file does not say.
std::optional<int64_t> KnownRank(const Value& value);

// Returns the size of `value` along `axis`, which counts from the end where negative; nullopt
// where the file does not say, or there is no such axis.
std::optional<int64_t> KnownDim(const Value& value, int64_t axis);

}  // namespace reprise
