// WithHeadsApart: a decoder whose caches have three dims as one whose caches have four.
//
// Some exporters fold heads into the batch: [batch * heads, past, size], or keys as
// [batch * heads, size, past] (Bloom). Others keep the one head of all queries without a dim, its
// keys and values next to each other: [batch, past, 2 * size] (BigCode). Pages take
// [batch, heads, past, size], keys and values each by themselves.
//
// Threads: pure.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise {

// Returns `symbolic` with inputs of four dims for such caches, and with the results that it had:
// the old forms are computed from the new ones, and new rows join the past in the new form.
// nullopt: no cache has three dims. A cache is known by the Concat that joins new rows to it; its
// heads are read off its dim 0, which is a multiple of the batch.
absl::StatusOr<std::optional<Graph>> WithHeadsApart(const Graph& symbolic);

}  // namespace reprise
