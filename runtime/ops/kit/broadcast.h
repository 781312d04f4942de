// Walks over strided operands: numpy broadcasting and every other "same loop, other strides".
//
// A walk is prepared once (dims of size 1 dropped, neighbours merged where every operand allows
// it), then calls a function for each innermost row, so that the typed loop is the callee's.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/graph/shape.h"

namespace reprise::ops {

// Returns the strides of an operand of `shape` seen as `out_shape`: right aligned, 0 where it is
// repeated.
Shape BroadcastStrides(absl::Span<const int64_t> shape, absl::Span<const int64_t> out_shape);

// A walk over `sizes` with N strided operands (1 to 3), row by row.
template <size_t N>
class StridedWalk {
 public:
  // Visits a row of `count` elements: `position` counts elements walked before it, `offsets` tell
  // where it begins in each operand. Called through a pointer, so that the walk is compiled once.
  using Row = absl::FunctionRef<void(int64_t position, const std::array<int64_t, N>& offsets,
                                     int64_t count)>;

  StridedWalk(absl::Span<const int64_t> sizes, const std::array<Shape, N>& strides);

  // Returns the stride along the innermost row.
  int64_t inner_stride(size_t n) const { return strides_[n].back(); }

  void ForEachRow(Row row) const;

 private:
  int64_t elements_ = 1;
  Shape sizes_;
  std::array<Shape, N> strides_;
};

// Computes out (dense, `sizes`) = in read at `strides`.
template <typename T>
void CopyStrided(absl::Span<const int64_t> sizes, const T* in, const Shape& strides, T* out) {
  StridedWalk<1> walk(sizes, {strides});
  const int64_t stride = walk.inner_stride(0);
  walk.ForEachRow([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    const T* x = in + offsets[0];
    T* y = out + position;
    if (stride == 1) {
      std::memcpy(y, x, count * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i * stride];
    }
  });
}

// Computes out[i] = f(a[i]) with `a` repeated as broadcasting says; `out` is dense with
// `out_shape`.
template <typename Out, typename A, typename F>
void BroadcastApply(absl::Span<const int64_t> out_shape, Out* out, const A* a,
                    absl::Span<const int64_t> a_shape, F f) {
  StridedWalk<1> walk(out_shape, {BroadcastStrides(a_shape, out_shape)});
  const int64_t stride = walk.inner_stride(0);
  walk.ForEachRow([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    const A* x = a + offsets[0];
    Out* y = out + position;
    if (stride == 1) {
      for (int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) y[i] = f(x[i * stride]);
    }
  });
}

// Computes out[i] = f(a[i], b[i]), both repeated as broadcasting says.
template <typename Out, typename A, typename B, typename F>
void BroadcastApply(absl::Span<const int64_t> out_shape, Out* out, const A* a,
                    absl::Span<const int64_t> a_shape, const B* b,
                    absl::Span<const int64_t> b_shape, F f) {
  StridedWalk<2> walk(out_shape,
                      {BroadcastStrides(a_shape, out_shape), BroadcastStrides(b_shape, out_shape)});
  const int64_t a_stride = walk.inner_stride(0);
  const int64_t b_stride = walk.inner_stride(1);
  walk.ForEachRow([&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
    const A* x = a + offsets[0];
    const B* y = b + offsets[1];
    Out* z = out + position;
    if (a_stride == 1 && b_stride == 1) {
      for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
    } else if (a_stride == 1 && b_stride == 0) {
      const B right = *y;
      for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], right);
    } else if (a_stride == 0 && b_stride == 1) {
      const A left = *x;
      for (int64_t i = 0; i < count; ++i) z[i] = f(left, y[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) z[i] = f(x[i * a_stride], y[i * b_stride]);
    }
  });
}

}  // namespace reprise::ops
