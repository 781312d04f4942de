// Element types of C++ and of tensors: which T the elements of a tensor may be read as.
#pragma once

#include <cstdint>

#include "runtime/graph/dtype.h"

namespace reprise {

// The dtype of elements that are written as T; kUndefined for another type.
template <typename T>
inline constexpr DType kElementDType = DType::kUndefined;
template <>
inline constexpr DType kElementDType<float> = DType::kFloat32;
template <>
inline constexpr DType kElementDType<double> = DType::kFloat64;
template <>
inline constexpr DType kElementDType<int8_t> = DType::kInt8;
template <>
inline constexpr DType kElementDType<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kElementDType<int16_t> = DType::kInt16;
template <>
inline constexpr DType kElementDType<uint16_t> = DType::kUInt16;
template <>
inline constexpr DType kElementDType<int32_t> = DType::kInt32;
template <>
inline constexpr DType kElementDType<uint32_t> = DType::kUInt32;
template <>
inline constexpr DType kElementDType<int64_t> = DType::kInt64;
template <>
inline constexpr DType kElementDType<uint64_t> = DType::kUInt64;
template <>
inline constexpr DType kElementDType<bool> = DType::kBool;

// Returns whether elements of `dtype` may be seen as T: their own type, and the bits of halves as
// uint16_t, of bools as uint8_t.
template <typename T>
constexpr bool IsSeenAs(DType dtype) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    return kElementDType<T> == DType::kUInt16;
  }
  if (dtype == DType::kBool && kElementDType<T> == DType::kUInt8) return true;
  return dtype != DType::kUndefined && kElementDType<T> == dtype;
}

}  // namespace reprise
