// Matrix products: MatMul, Gemm, MatMulInteger, com.microsoft.FusedMatMul, reprise.Linear.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule MatMulRule, GemmRule, MatMulIntegerRule, FusedMatMulRule, LinearRule;
Kernel MatMulKernel, GemmKernel, MatMulIntegerKernel, FusedMatMulKernel, LinearKernel;

// Returns the shape of a·b under numpy's rules (1-D operands, broadcast batch dims).
absl::StatusOr<SizeList> MatMulShape(const SizeList& a, const SizeList& b);

// Computes c[m, n] = a[m, k] · b[k, n], dense, accumulated in float in the order of k.
void MultiplyF32(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n);

// Checks y = activation(y), one of none, gelu, gelu_tanh, gelu_doubled, gelu_tanh_doubled, relu,
// tanh, sigmoid, silu; INVALID_ARGUMENT naming an unknown one.
absl::Status CheckActivation(absl::string_view activation);
void ApplyActivation(absl::string_view activation, float* y, int64_t count);

}  // namespace reprise::ops
