// Products over quantised weights as onnxruntime's optimiser writes them.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule DynamicQuantizeMatMulRule, MatMulIntegerToFloatRule, MatMulNBitsRule;
Kernel DynamicQuantizeMatMulKernel, MatMulIntegerToFloatKernel, MatMulNBitsKernel;

}  // namespace reprise::ops
