// The report that `reprise check` prints about a model that loads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"

namespace reprise::cli {

// Inputs and outputs, axes with their certificates in words, kernels of one bucket, memory of every
// bucket, weights, and the estimate of it all for `streams` replays at a time. `stated_context`: a
// decoder's, by a file next to it; 0: none says it. Compiles every bucket, runs none of them.
// Errors: those that stop all buckets alike, such as INTERNAL.
absl::StatusOr<std::string> CheckReport(const Engine& engine, const Model& model, int streams,
                                        int64_t stated_context = 0);

}  // namespace reprise::cli
