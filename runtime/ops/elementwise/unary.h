// Elementwise ops of one operand. Their rule is SameRule, or CompareRule where they answer bools.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// com.microsoft.QuickGelu(x) {alpha}: x sigmoid(alpha x); its alpha where none is given.
inline constexpr float kQuickGeluAlpha = 1.702f;

// Signed numbers.
Kernel AbsKernel, NegKernel, SignKernel, ReluKernel;
// Floating-point.
Kernel CeilKernel, FloorKernel, RoundKernel, SqrtKernel, ReciprocalKernel, ExpKernel, LogKernel;
Kernel SinKernel, CosKernel, TanKernel, AsinKernel, AcosKernel, AtanKernel, SinhKernel, CoshKernel,
    TanhKernel, AsinhKernel, AcoshKernel, AtanhKernel, ErfKernel;
Kernel SigmoidKernel, GeluKernel, QuickGeluKernel, SoftplusKernel, SoftsignKernel, MishKernel,
    EluKernel, CeluKernel, SeluKernel, LeakyReluKernel, HardSigmoidKernel, HardSwishKernel,
    ThresholdedReluKernel;
// Numbers within `lambd` of 0 become 0, others move towards 0 by `bias`.
Kernel ShrinkKernel;
// To bool.
Kernel NotKernel, BitwiseNotKernel, IsNaNKernel, IsInfKernel;

// Returns the scalar functions that fused kernels share.
float GeluExact(float x);
float GeluTanh(float x);
// Returns the same, halved last.
float GeluExactDoubled(float x);
float GeluTanhDoubled(float x);

}  // namespace reprise::ops
