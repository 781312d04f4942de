// Kernels for quantised planes between convolutions, on vectors: sums, functions of a byte, and max
// pooling. Every tier gives the same bits as the reference kernels.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/gemm/conv_finish.h"

namespace reprise::cpu {

// y = QuantizeLinear(activation(a_scale (a - a_zero) + b_scale (b - b_zero)), y_scale, y_zero).
struct ByteSum {
  struct Side {
    float scale = 1;
    int zero = 0;
    bool is_signed = false;
  };
  Side a, b, y;
  ConvActivation activation;
};

struct BytePlaneKernels {
  void (*add)(const ByteSum& sum, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t count);
  // y[i] = the largest of rows[r][i] for r in [0, count), one row at least.
  void (*largest)(const uint8_t* const* rows, int64_t count, bool is_signed, int64_t bytes,
                  uint8_t* y);
  // y[i] = table[x[i]]; `table` [256]. In place where y is x.
  void (*look_up)(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count);
};

// Returns the kernels of the highest tier that is not above `isa`.
const BytePlaneKernels& BytePlaneKernelsFor(Isa isa);

}  // namespace reprise::cpu
