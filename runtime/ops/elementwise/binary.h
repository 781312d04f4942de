// Elementwise ops of two operands that broadcast: arithmetic, comparison, logic; and the variadic
// ones (Max, Min, Sum, Mean).
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Kernel AddKernel, SubKernel, MulKernel, DivKernel, ModKernel, PowKernel, PReluKernel;
Rule PowRule;    // base and exponent may differ in dtype; the result has the base's
Rule PReluRule;  // the slope broadcasts to the input, not the other way round

Kernel EqualKernel, LessKernel, LessOrEqualKernel, GreaterKernel, GreaterOrEqualKernel;
Kernel AndKernel, OrKernel, XorKernel;

Kernel BitwiseAndKernel, BitwiseOrKernel, BitwiseXorKernel;
Rule BitShiftRule;
Kernel BitShiftKernel;  // a shift below 0 or by all bits leaves nothing but a sign

Kernel MaxKernel, MinKernel, SumKernel, MeanKernel;

// com.microsoft.BiasGelu, and com.microsoft.FastGelu with its optional bias.
Rule BiasGeluRule;
Kernel BiasGeluKernel, FastGeluKernel;

}  // namespace reprise::ops
