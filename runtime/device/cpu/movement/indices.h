// Indices that choose rows or elements. One that is out of range is reported and 0 used in its
// place, so that batch-mates are answered; negative ones count from the end.
#pragma once

#include <cstdint>

#include "runtime/device/launch.h"
#include "runtime/graph/dtype.h"

namespace reprise::cpu {

// The elements of an index operand.
struct Indices {
  const void* data;
  bool wide;  // int64, else int32

  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

inline bool IsIndex(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Index `element` of operand `operand` mapped to [0, size).
inline int64_t CheckedIndex(const LaunchArgs& launch, int operand, const Indices& indices,
                            int64_t element, int64_t size) {
  const int64_t index = indices[element];
  if (index >= 0 && index < size) return index;
  if (index < 0 && index >= -size) return index + size;
  launch.frame->errors->Report(launch.launch, operand, element, index, -size, size - 1);
  return 0;
}

}  // namespace reprise::cpu
