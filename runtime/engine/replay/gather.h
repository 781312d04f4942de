// Gather and scatter: requests into a frame's inputs, a frame's outputs into responses.
//
// Both are one operation: copying a block of one row-major tensor to a place in another of the same
// rank, in the longest contiguous runs there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/graph/dtype.h"
#include "runtime/graph/shape.h"

namespace reprise {

// Copies the block of `shape` (elements of `element_bytes`) that starts at `from_offset` of a
// tensor of shape `from_shape` to `to_offset` of a tensor of shape `to_shape`. All spans have one
// rank. The block must lie inside both.
struct BlockCopy {
  absl::Span<const int64_t> shape;
  absl::Span<const int64_t> from_shape;
  absl::Span<const int64_t> from_offset;
  absl::Span<const int64_t> to_shape;
  absl::Span<const int64_t> to_offset;
  size_t element_bytes = 0;
};
void CopyBlock(const BlockCopy& copy, const void* from, void* to);
// Fills `count` elements of `dtype` with `value`, converted (saturated for integers).
void FillElements(DType dtype, double value, int64_t count, void* to);

}  // namespace reprise
