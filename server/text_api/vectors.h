// Arithmetic on vectors that are answered.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace reprise {

// The first `dimensions` elements of `vector`, all where that is absent; of length 1 where
// `normalize`, or where it was cut and `was_normal`. INVALID_ARGUMENT where the vector has fewer.
absl::StatusOr<std::vector<float>> CutVector(absl::Span<const float> vector,
                                             std::optional<int64_t> dimensions, bool normalize,
                                             bool was_normal);

// 0 where one of them has no length.
float Cosine(absl::Span<const float> a, absl::Span<const float> b);

float Sigmoid(float x);
std::vector<float> Softmax(absl::Span<const float> x);

}  // namespace reprise
