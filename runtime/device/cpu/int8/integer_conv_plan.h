// The parts that the plans of reprise.IntegerConv share, whether channels lie first or last.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/copy_bytes.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {

// Along one dim of a plane.
struct PlaneAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;

  // Returns where tap `tap` of window `window` lies; outside of [0, in): in the padding.
  int64_t At(int64_t window, int64_t tap) const { return window * stride - pad + tap * dilation; }
  bool plain() const { return kernel == 1 && stride == 1 && pad == 0 && in == out; }
};

// Sets the axes of the planes of `x`, NCHW with one or two spatial dims; a single one is `columns`.
inline void SetPlaneAxes(const Shape& x, const ops::Windows& windows, PlaneAxis& rows,
                         PlaneAxis& columns) {
  const size_t dims = x.size() - 2;
  for (size_t d = 0; d < dims; ++d) {
    (d + 1 == dims ? columns : rows) = {.in = x[d + 2],
                                        .out = windows.out[d],
                                        .kernel = windows.kernel[d],
                                        .stride = windows.strides[d],
                                        .dilation = windows.dilations[d],
                                        .pad = windows.pad_begin[d]};
  }
}

// The batch and the operands of a launch: kNoOperand where the node leaves one out.
struct IntegerConvOperands {
  int64_t batch = 0, batch_rows = 0;
  bool x_signed = false, weights_signed = false;
  bool scale_a_map = false, zero_a_map = false;
  int x_zero = kNoOperand, w_zero = kNoOperand, bias = kNoOperand, residual = kNoOperand;
  int y_scale = kNoOperand;  // the zero point of the result is after it
  int out = 0, workspace = 0;

  void SetFrom(const NodeView& node) {
    const auto operand = [&](int i) { return node.has_input(i) ? i : kNoOperand; };
    batch = node.shape(0)[0];
    // Only whole elements of the batch can be left out.
    const int64_t live = node.batch_rows();
    batch_rows = live > 0 && batch % live == 0 ? live : 0;
    x_signed = node.dtype(0) == DType::kInt8;
    weights_signed = node.dtype(1) == DType::kInt8;
    scale_a_map = NumElements(node.shape(3)) > 1;
    x_zero = operand(4);
    w_zero = operand(5);
    zero_a_map = node.has_input(5) && NumElements(node.shape(5)) > 1;
    bias = operand(6);
    residual = operand(7);
    y_scale = operand(8);
    out = static_cast<int>(node.num_inputs());
    workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  }
};

}  // namespace reprise::cpu
