// Checks the values in a request's guards: a certificate for padding was measured, and holds, for
// masks as clients send them. Requests with others run at their exact sizes.
//
// Threads: free functions of their arguments. A request's bytes need not be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "runtime/engine/types/request.h"
#include "runtime/graph/dtype.h"
#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// Returns whether every line of `tensor` along `axis_dim` holds something other than `fill` at
// `places`.
bool EveryRowCounts(CountingPlaces places, double fill, DType dtype, const InputTensor& tensor,
                    size_t axis_dim);

// How many of the keys that lie along its `axis_dims` an input hides.
enum class Hiding { kNothing, kSome, kTooMuch };

// Returns kSome where `places` of every line are left. An element hides if it is `fill`, where
// there is one, or a float so low that it is a mask, or NaN, when it is added to scores.
Hiding HidingOf(CountingPlaces places, std::optional<double> fill, DType dtype,
                const InputTensor& tensor, absl::Span<const size_t> axis_dims);

// Returns whether a guard holds only values that its certificate has tested: masks and ids no
// number below the fill value (and zero), which would be hidden deeper than padding, or counted
// from the end; masks of integers nothing above one, so that sums of them are lengths.
bool HoldsWhatWasProved(DType dtype, const InputTensor& tensor, double fill, bool is_mask);

// Returns whether every element is a length up to `most`.
bool AllLengthsUpTo(int64_t most, DType dtype, const InputTensor& tensor);

}  // namespace reprise
