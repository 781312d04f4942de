// KnownNumbers: what constants alone decide while a file is read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

// The integers that `value` holds, where it is a constant or a few nodes over small constants;
// nullopt where a request decides it, random numbers do, or more work than that. Nothing is added
// to `graph`.
std::optional<std::vector<int64_t>> KnownNumbers(const Graph& graph, ValueId value);

}  // namespace reprise
