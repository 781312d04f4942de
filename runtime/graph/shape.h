// Shape: the sizes of a tensor's dims, all constant. Dim: a size that may still be a symbol.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace reprise {

// Row-major sizes, outermost first; empty for a scalar; a size may be 0.
using Shape = absl::InlinedVector<int64_t, 6>;

// The largest product of the non-zero sizes of a shape without elements: kernels may walk over
// empty rows, and a request for these takes no bytes.
inline constexpr int64_t kMostOfNothing = int64_t{1} << 31;

// Returns the product of the sizes (1 for a scalar), or RESOURCE_EXHAUSTED on int64 overflow and
// beyond kMostOfNothing, INVALID_ARGUMENT on a negative size. Products of some of the sizes, and of
// all but the zeros, are safe then.
absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const int64_t> shape);

// Returns the product, for shapes already checked.
int64_t NumElements(absl::Span<const int64_t> shape);

// Returns row-major strides in elements.
Shape Strides(absl::Span<const int64_t> shape);

// Returns "[2, 128, 384]".
std::string ShapeToString(absl::Span<const int64_t> shape);

// Maps a possibly negative axis to [0, rank); INVALID_ARGUMENT when out of range. With
// `inclusive`, `rank` itself is allowed too (Unsqueeze, Flatten).
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank, bool inclusive = false);

// A dim as a model declares it: a constant size, or a symbol ("batch", "past + 1", or one that the
// importer made up for an unnamed dim, `input:0`).
struct Dim {
  int64_t size = -1;   // -1: symbolic
  std::string symbol;  // empty: constant

  bool is_constant() const { return symbol.empty(); }
  friend bool operator==(const Dim&, const Dim&) = default;
};

}  // namespace reprise
