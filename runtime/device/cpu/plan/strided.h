// Walks over strided operands, for kernels that broadcast, slice or permute.
//
// A walk is made once, when a node is bound: dims of size 1 are dropped and neighbours merged where
// every operand allows it. A replay then hands each part its share of the output's elements as runs
// along the innermost dim. Plain data, no allocation in a replay.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/graph/shape.h"
#include "runtime/ops/kit/broadcast.h"

namespace reprise::cpu {

inline constexpr size_t kMaxWalkDims = 8;

template <size_t N>
struct Walk {
  size_t dims = 0;
  int64_t elements = 1;
  int64_t sizes[kMaxWalkDims] = {};
  int64_t strides[N][kMaxWalkDims] = {};  // elements

  int64_t inner_stride(size_t n) const { return strides[n][dims - 1]; }
};

// Returns a walk over `shape`, whose operand n has `strides[n]` (one a dim); nothing when
// more than kMaxWalkDims dims are left after merging.
template <size_t N>
std::optional<Walk<N>> MakeWalk(absl::Span<const int64_t> shape,
                                const std::array<Shape, N>& strides) {
  Walk<N> walk;
  for (size_t d = 0; d < shape.size(); ++d) {
    walk.elements *= shape[d];
    if (shape[d] == 1) continue;
    bool merge = walk.dims > 0;
    for (size_t n = 0; merge && n < N; ++n) {
      merge = walk.strides[n][walk.dims - 1] == strides[n][d] * shape[d];
    }
    if (!merge) {
      if (walk.dims == kMaxWalkDims) return std::nullopt;
      walk.sizes[walk.dims++] = 1;
    }
    walk.sizes[walk.dims - 1] *= shape[d];
    for (size_t n = 0; n < N; ++n) walk.strides[n][walk.dims - 1] = strides[n][d];
  }
  if (walk.dims == 0) walk.sizes[walk.dims++] = 1;
  return walk;
}

// Returns a walk of operands that broadcast to `out`.
template <size_t N>
std::optional<Walk<N>> MakeBroadcastWalk(absl::Span<const int64_t> out,
                                         const std::array<Shape, N>& shapes) {
  std::array<Shape, N> strides;
  for (size_t n = 0; n < N; ++n) strides[n] = ops::BroadcastStrides(shapes[n], out);
  return MakeWalk<N>(out, strides);
}

// Calls run(position, offsets, count) for the runs of elements [begin, end) of the output: elements
// [position, position + count) of it; `offsets[n]` is the element of operand n with which the run
// begins.
template <size_t N, class F>
void ForEachRunOf(const Walk<N>& walk, ItemRange range, F run) {
  if (range.begin >= range.end) return;
  int64_t index[kMaxWalkDims];
  std::array<int64_t, N> offsets = {};
  int64_t rest = range.begin;
  for (size_t d = walk.dims; d-- > 0;) {
    index[d] = rest % walk.sizes[d];
    rest /= walk.sizes[d];
    for (size_t n = 0; n < N; ++n) offsets[n] += index[d] * walk.strides[n][d];
  }
  const size_t last = walk.dims - 1;
  for (int64_t position = range.begin; position < range.end;) {
    const int64_t count = std::min(walk.sizes[last] - index[last], range.end - position);
    run(position, offsets, count);
    position += count;
    for (size_t n = 0; n < N; ++n) offsets[n] -= index[last] * walk.strides[n][last];
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      for (size_t n = 0; n < N; ++n) offsets[n] += walk.strides[n][d];
      if (++index[d] < walk.sizes[d]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= walk.sizes[d] * walk.strides[n][d];
      index[d] = 0;
    }
  }
}

// Calls run() for the elements of part `part` of the first `live` ones.
template <size_t N, class F>
void ForEachRun(const Walk<N>& walk, int64_t live, int part, int parts, F run) {
  constexpr int64_t kGrain = 64;
  ForEachRunOf(walk, RangeOfPart(live, kGrain, part, parts), run);
}

}  // namespace reprise::cpu
