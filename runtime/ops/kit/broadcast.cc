#include "runtime/ops/kit/broadcast.h"

#include "runtime/base/work_watch.h"

namespace reprise::ops {

Shape BroadcastStrides(absl::Span<const int64_t> shape, absl::Span<const int64_t> out_shape) {
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
StridedWalk<N>::StridedWalk(absl::Span<const int64_t> sizes, const std::array<Shape, N>& strides) {
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

template <size_t N>
void StridedWalk<N>::ForEachRow(Row row) const {
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

template class StridedWalk<1>;
template class StridedWalk<2>;
template class StridedWalk<3>;

}  // namespace reprise::ops
