// Walks over strided operands: numpy broadcasting and every other "same loop, other strides".
//
// A walk is prepared once (dims of size 1 dropped, neighbours merged where every operand allows
// it), then calls a function for each innermost row, so that the typed loop is the callee's.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/shape.h"

namespace reprise::ops {

// Strides of an operand of `shape` seen as `out_shape`: right aligned, 0 where it is repeated.
inline Shape BroadcastStrides(absl::Span<const int64_t> shape,
                              absl::Span<const int64_t> out_shape) {
  Shape strides(out_shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t from = shape.size() - 1 - i;
    strides[out_shape.size() - 1 - i] = shape[from] == 1 ? 0 : stride;
    stride *= shape[from];
  }
  return strides;
}

template <size_t N>
class StridedWalk {
 public:
  StridedWalk(absl::Span<const int64_t> sizes, const std::array<Shape, N>& strides) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      elements_ *= sizes[d];
      if (sizes[d] == 1) continue;
      bool merge = !sizes_.empty();
      for (size_t n = 0; merge && n < N; ++n) {
        merge = strides_[n].back() == strides[n][d] * sizes[d];
      }
      if (merge) {
        sizes_.back() *= sizes[d];
        for (size_t n = 0; n < N; ++n) strides_[n].back() = strides[n][d];
      } else {
        sizes_.push_back(sizes[d]);
        for (size_t n = 0; n < N; ++n) strides_[n].push_back(strides[n][d]);
      }
    }
    if (sizes_.empty()) {
      sizes_.push_back(1);
      for (size_t n = 0; n < N; ++n) strides_[n].push_back(0);
    }
  }

  // Strides along the innermost row.
  int64_t inner_stride(size_t n) const { return strides_[n].back(); }

  // row(position, offsets, count): `position` counts elements walked before this row.
  template <typename F>
  void ForEachRow(F&& row) const {
    if (elements_ == 0) return;
    const size_t rank = sizes_.size();
    const int64_t count = sizes_.back();
    Shape index(rank, 0);
    std::array<int64_t, N> offsets{};
    for (int64_t position = 0; position < elements_; position += count) {
      WatchWork(count);
      row(position, offsets, count);
      for (size_t d = rank - 1; d-- > 0;) {
        for (size_t n = 0; n < N; ++n) offsets[n] += strides_[n][d];
        if (++index[d] < sizes_[d]) break;
        for (size_t n = 0; n < N; ++n) offsets[n] -= strides_[n][d] * sizes_[d];
        index[d] = 0;
      }
    }
  }

 private:
  int64_t elements_ = 1;
  Shape sizes_;
  std::array<Shape, N> strides_;
};

// out (dense, `sizes`) = in read at `strides`.
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

// out[i] = f(a[i]) with `a` repeated as broadcasting says; `out` is dense with `out_shape`.
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

// out[i] = f(a[i], b[i]), both repeated as broadcasting says.
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
