// FindPresents: which outputs of a decoder are its caches with the new keys and values after them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/paged/decoder.h"

namespace reprise {

inline constexpr int kNoCache = -1;

// For each output of the graph the position of its cache in Decoder::caches, kNoCache for the
// scores. UNIMPLEMENTED naming an output that is neither, or has not a row for each token, or a
// cache that no output continues.
absl::StatusOr<std::vector<int>> FindPresents(const Graph& symbolic, const Decoder& decoder,
                                              const std::vector<std::string>& outputs);

}  // namespace reprise
