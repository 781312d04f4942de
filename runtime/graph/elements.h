// AllElements: a question about every element of a tensor, asked in place.
//
// Tensor::ToDoubles copies a tensor into one of twice its size or more. Code that only needs to
// know whether something holds for all elements asks here, and mostly stops at the first one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/graph/tensor.h"

namespace reprise {

// Returns whether `holds(double)` for every element of `tensor`, each as Tensor::ToDoubles has it.
template <typename Predicate>
bool AllElements(const Tensor& tensor, Predicate holds) {
  const auto all = [&]<typename T>(T) {
    const auto values = tensor.span<T>();
    return std::all_of(values.begin(), values.end(),
                       [&](T value) { return holds(static_cast<double>(value)); });
  };
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return all(float{});
    case DType::kFloat64:
      return all(double{});
    case DType::kInt64:
      return all(int64_t{});
    case DType::kUInt64:
      return all(uint64_t{});
    case DType::kInt32:
      return all(int32_t{});
    case DType::kUInt32:
      return all(uint32_t{});
    case DType::kInt16:
      return all(int16_t{});
    case DType::kUInt16:
      return all(uint16_t{});
    case DType::kInt8:
      return all(int8_t{});
    case DType::kBool:
    case DType::kUInt8:
      return all(uint8_t{});
    case DType::kFloat16:
    case DType::kBFloat16: {
      const bool half = tensor.dtype() == DType::kFloat16;
      const auto values = tensor.span<uint16_t>();
      return std::all_of(values.begin(), values.end(), [&](uint16_t bits) {
        return holds(half ? HalfToFloat(bits) : BFloat16ToFloat(bits));
      });
    }
    case DType::kUndefined:
      return true;
  }
  return true;
}

}  // namespace reprise
