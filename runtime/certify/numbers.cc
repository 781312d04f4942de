#include "runtime/certify/numbers.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/algorithm/container.h"

namespace reprise {
namespace {

template <typename T>
void Store(const std::vector<double>& values, void* data) {
  T* out = static_cast<T*>(data);
  for (double value : values) {
    // 2^63 as a double is above the largest int64: the upper bound itself must not be cast.
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      *out++ = std::numeric_limits<T>::max();
    } else {
      *out++ =
          static_cast<T>(std::max(value, static_cast<double>(std::numeric_limits<T>::lowest())));
    }
  }
}

void StoreAs(DType dtype, const std::vector<double>& values, void* data) {
  switch (dtype) {
    case DType::kFloat32:
      return Store<float>(values, data);
    case DType::kFloat64:
      return Store<double>(values, data);
    case DType::kFloat16:
      absl::c_transform(values, static_cast<uint16_t*>(data), [](double v) {
        return FloatToHalf(static_cast<float>(std::clamp(v, -65504.0, 65504.0)));
      });
      return;
    case DType::kBFloat16:
      absl::c_transform(values, static_cast<uint16_t*>(data),
                        [](double v) { return FloatToBFloat16(static_cast<float>(v)); });
      return;
    case DType::kBool:
      absl::c_transform(values, static_cast<uint8_t*>(data),
                        [](double v) -> uint8_t { return v != 0; });
      return;
    case DType::kInt8:
      return Store<int8_t>(values, data);
    case DType::kUInt8:
      return Store<uint8_t>(values, data);
    case DType::kInt16:
      return Store<int16_t>(values, data);
    case DType::kUInt16:
      return Store<uint16_t>(values, data);
    case DType::kInt32:
      return Store<int32_t>(values, data);
    case DType::kUInt32:
      return Store<uint32_t>(values, data);
    case DType::kInt64:
      return Store<int64_t>(values, data);
    case DType::kUInt64:
      return Store<uint64_t>(values, data);
    case DType::kUndefined:
      return;
  }
}

}  // namespace

Tensor ToTensor(const Numbers& numbers) {
  return Tensor::Make(numbers.dtype, numbers.shape,
                      [&](void* data) { StoreAs(numbers.dtype, numbers.values, data); });
}

size_t DimsOfCopies(const Tensor& tensor, size_t end) {
  size_t bytes = tensor.bytes();
  for (size_t d = 0; d < end; ++d) {
    const auto places = static_cast<size_t>(tensor.shape()[d]);
    if (places == 0) return d;
    const size_t part = bytes / places;
    const auto* data = static_cast<const uint8_t*>(tensor.data());
    if (bytes > part && std::memcmp(data, data + part, bytes - part) != 0) return d;
    bytes = part;
  }
  return end;
}

Tensor FirstOfCopies(const Tensor& tensor, size_t dims) {
  if (dims == 0) return tensor;
  Shape shape = tensor.shape();
  std::fill_n(shape.begin(), dims, 1);
  const auto bytes = NumElements(shape) * static_cast<int64_t>(DTypeSize(tensor.dtype()));
  return Tensor::Make(tensor.dtype(), shape, [&](void* data) {
    std::memcpy(data, tensor.data(), static_cast<size_t>(bytes));
  });
}

}  // namespace reprise
