// Products over quantised weights as onnxruntime's optimiser writes them.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

Rule MatMulNBitsRule;
Kernel MatMulNBitsKernel;

}  // namespace reprise::ops
