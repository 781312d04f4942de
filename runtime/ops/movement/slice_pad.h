// Slice and Pad: a part of the input, and the input inside something larger.
#pragma once

#include "absl/strings/string_view.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule SliceRule, PadRule;
Kernel SliceKernel, PadKernel;

// The elements that a Slice takes. `Number`: int64_t in the kernel, Size in the rule.
template <typename Number>
struct SliceSpec {
  absl::InlinedVector<Number, 6> sizes;
  absl::InlinedVector<Number, 6> starts;
  Shape steps;
};
absl::StatusOr<SliceSpec<Size>> ResolvedSlice(const InferContext& context);

// A dim of `size` and the elements that Pad adds at either end of it, or cuts off where negative.
struct PaddedDim {
  int64_t size = 0, begin = 0, end = 0;

  // Returns where the element at `at` of the result comes from; -1: it is the constant, or nothing
  // is left.
  int64_t Source(absl::string_view mode, int64_t at) const;
};

}  // namespace reprise::ops
