// Products over quantised weights as onnxruntime's optimiser writes them.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule DynamicQuantizeMatMulRule, MatMulIntegerToFloatRule;
Kernel DynamicQuantizeMatMulKernel, MatMulIntegerToFloatKernel;

}  // namespace reprise::ops
