// Normalisations: softmax and its kin, layer, root-mean-square and batch normalisation.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule SoftmaxRule;
Kernel SoftmaxKernel, LogSoftmaxKernel, HardmaxKernel;

Rule LayerNormalizationRule, RmsNormalizationRule, BatchNormalizationRule;
Kernel LayerNormalizationKernel, RmsNormalizationKernel, BatchNormalizationKernel;

// reprise.AddLayerNorm(x, residual, gamma, beta?) {axis, epsilon}: the normalised sum, and the sum.
Rule AddLayerNormRule;
Kernel AddLayerNormKernel;

// com.microsoft.SkipLayerNormalization(x, skip, gamma, beta?, bias?) and the simplified form
// (x, skip, gamma, bias?); outputs the normalised sum, _, _, the sum.
Rule SkipLayerNormRule, SkipSimplifiedLayerNormRule;
Kernel SkipLayerNormKernel, SkipSimplifiedLayerNormKernel;

}  // namespace reprise::ops
