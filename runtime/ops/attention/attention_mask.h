// The masks of attention ops, as an additive bias [batch, heads, queries, keys].
#pragma once

#include <vector>

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Checks one of onnxruntime's integer masks: [batch] lengths, [2 * batch] ends and starts, [batch,
// keys] or [batch, queries, keys] of zeros and ones.
absl::Status CheckPaddingMask(const InferContext& context, size_t input, const SizeList& scores);

// Checks a float operand that broadcasts to the scores.
absl::Status CheckAttentionBias(const InferContext& context, size_t input, const SizeList& scores);

// Returns the bias of a node of onnxruntime's: `mask_filter_value` is added where the mask of input
// `mask` hides a key; with `unidirectional` keys after a query have the lowest float, where queries
// start `past` keys after the first; then input `attention_bias` is added. Inputs may be left out.
std::vector<float> MicrosoftBias(const KernelContext& context, const Shape& scores, size_t mask,
                                 size_t attention_bias, int64_t past);

// Returns attribute `scale`, where 0 or nothing means 1 / sqrt(size).
float ScaleOf(const Attributes& attributes, int64_t size);

}  // namespace reprise::ops
