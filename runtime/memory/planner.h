// PlanMemory: offsets for buffers that are not all live at the same time.
//
// Buffers that are live at the same launch never overlap; others share bytes. The largest buffer
// is placed first, each in the smallest gap that holds it (best fit), which on transformers comes
// within a few percent of the lower bound.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace reprise {

// `bytes` are needed from launch `first` to launch `last`, both included.
struct BufferRequest {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // one a request, multiples of 64
  size_t bytes = 0;             // the whole, a multiple of 64
};

// Returns offsets and their total. Deterministic: equal requests give equal plans, so that equal
// recipes have equal layouts.
MemoryPlan PlanMemory(absl::Span<const BufferRequest> requests);

// Returns a bound below which no plan can be: the most bytes (each request rounded up to 64) live
// at one launch.
size_t MemoryLowerBound(absl::Span<const BufferRequest> requests);

}  // namespace reprise
