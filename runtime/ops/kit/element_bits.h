// Elements of a tensor as int64, for any dtype: integers by value, all others by their bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/graph/tensor.h"

namespace reprise {

inline int64_t ElementBits(DType dtype, const void* data, int64_t index) {
  const auto* const bytes = static_cast<const char*>(data) + index * DTypeSize(dtype);
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, bytes, sizeof(T));
    return static_cast<int64_t>(value);
  };
  const bool is_signed = IsInteger(dtype) && dtype != DType::kUInt8 && dtype != DType::kUInt16 &&
                         dtype != DType::kUInt32 && dtype != DType::kUInt64;
  switch (DTypeSize(dtype)) {
    case 1:
      return is_signed ? read(int8_t{}) : read(uint8_t{});
    case 2:
      return is_signed ? read(int16_t{}) : read(uint16_t{});
    case 4:
      return is_signed ? read(int32_t{}) : read(uint32_t{});
    default:
      return read(int64_t{});
  }
}

// Returns the tensor of these elements.
inline Tensor TensorOfElements(DType dtype, Shape shape, absl::Span<const int64_t> elements) {
  return Tensor::Make(dtype, std::move(shape), [&](void* data) {
    auto* bytes = static_cast<char*>(data);
    for (const int64_t element : elements) {
      std::memcpy(bytes, &element, DTypeSize(dtype));  // little-endian
      bytes += DTypeSize(dtype);
    }
  });
}

}  // namespace reprise
