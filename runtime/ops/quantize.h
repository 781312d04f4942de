// Conversions between floats and integers with a scale and a zero point.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule DequantizeLinearRule, QuantizeLinearRule, DynamicQuantizeLinearRule, QLinearMatMulRule;
Kernel DequantizeLinearKernel, QuantizeLinearKernel, DynamicQuantizeLinearKernel,
    QLinearMatMulKernel;

}  // namespace reprise::ops
