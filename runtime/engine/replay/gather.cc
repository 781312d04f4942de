#include "runtime/engine/replay/gather.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/graph/tensor.h"

namespace reprise {
namespace {

template <typename T>
void FillTyped(double value, int64_t count, void* to) {
  T element;
  if constexpr (std::numeric_limits<T>::is_integer) {
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(value)) {
      element = 0;
    } else if (value <= low) {
      element = std::numeric_limits<T>::min();
    } else if (value >= high) {
      element = std::numeric_limits<T>::max();
    } else {
      element = static_cast<T>(value);
    }
  } else {
    element = static_cast<T>(value);
  }
  std::fill_n(static_cast<T*>(to), count, element);
}

// Calls `copy_run(source, offset, bytes)` for each run of the block, `offset` in bytes of the
// target.
template <typename F>
void ForEachRun(const BlockCopy& copy, const void* from, const F& copy_run) {
  const size_t rank = copy.shape.size();
  for (int64_t size : copy.shape) {
    if (size == 0) return;
  }
  // Trailing dims that both tensors hold whole are one contiguous run with the dim before them.
  size_t split = rank;
  int64_t run = 1;
  while (split > 0) {
    const size_t d = split - 1;
    run *= copy.shape[d];
    --split;
    if (copy.shape[d] != copy.from_shape[d] || copy.shape[d] != copy.to_shape[d]) break;
  }
  const Shape from_strides = Strides(copy.from_shape);
  const Shape to_strides = Strides(copy.to_shape);
  int64_t from_at = 0, to_at = 0;
  for (size_t d = 0; d < rank; ++d) {
    from_at += copy.from_offset[d] * from_strides[d];
    to_at += copy.to_offset[d] * to_strides[d];
  }
  const size_t run_bytes = run * copy.element_bytes;
  const auto* source = static_cast<const char*>(from);
  Shape index(split, 0);
  while (true) {
    copy_run(source + from_at * copy.element_bytes, to_at * copy.element_bytes, run_bytes);
    size_t d = split;
    while (d > 0) {
      --d;
      from_at += from_strides[d];
      to_at += to_strides[d];
      if (++index[d] < copy.shape[d]) break;
      from_at -= copy.shape[d] * from_strides[d];
      to_at -= copy.shape[d] * to_strides[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (split == 0) return;
  }
}

}  // namespace

void CopyBlock(const BlockCopy& copy, const void* from, void* to) {
  auto* target = static_cast<char*>(to);
  ForEachRun(copy, from, [target](const char* source, size_t offset, size_t bytes) {
    std::memcpy(target + offset, source, bytes);
  });
}

void FillElements(DType dtype, double value, int64_t count, void* to) {
  switch (dtype) {
    case DType::kFloat32:
      return FillTyped<float>(value, count, to);
    case DType::kFloat64:
      return FillTyped<double>(value, count, to);
    case DType::kFloat16: {
      std::fill_n(static_cast<uint16_t*>(to), count, FloatToHalf(static_cast<float>(value)));
      return;
    }
    case DType::kBFloat16: {
      std::fill_n(static_cast<uint16_t*>(to), count, FloatToBFloat16(static_cast<float>(value)));
      return;
    }
    case DType::kInt8:
      return FillTyped<int8_t>(value, count, to);
    case DType::kUInt8:
      return FillTyped<uint8_t>(value, count, to);
    case DType::kBool:
      return FillTyped<uint8_t>(value != 0, count, to);
    case DType::kInt16:
      return FillTyped<int16_t>(value, count, to);
    case DType::kUInt16:
      return FillTyped<uint16_t>(value, count, to);
    case DType::kInt32:
      return FillTyped<int32_t>(value, count, to);
    case DType::kUInt32:
      return FillTyped<uint32_t>(value, count, to);
    case DType::kInt64:
      return FillTyped<int64_t>(value, count, to);
    case DType::kUInt64:
      return FillTyped<uint64_t>(value, count, to);
    case DType::kUndefined:
      return;
  }
}

}  // namespace reprise
