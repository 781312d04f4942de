// Numbers of float16 and bfloat16 as floats, wherever a file has them. Cast, which
// goes by strides, is typed_loops.h's; both convert by half-inl.h.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/graph/dtype.h"

namespace reprise::cpu {

struct HalfKernels {
  // y = x; exact. x may begin at any address.
  void (*widen)(const void* x, float* y, int64_t count);
  // y = x, which is a number of this half.
  void (*narrow)(const float* x, uint16_t* y, int64_t count);
  // y += x. x may begin at any address.
  void (*add)(const void* x, float* y, int64_t count);
};

inline bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// Returns the kernels for `half` of the highest tier that is not above `isa`.
const HalfKernels& HalfKernelsFor(Isa isa, DType half);

}  // namespace reprise::cpu
