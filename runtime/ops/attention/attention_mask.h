// The masks of attention ops, as an additive bias [batch, heads, queries, keys].
#pragma once

#include <vector>

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Sets the lowest float, over all other masks, where a key comes after its query; queries start
// `past` keys after the first.
void MaskFuture(const Shape& scores, int64_t past, std::vector<float>& bias);

// onnxruntime's integer masks: [batch] lengths, [2 * batch] ends and starts, [batch, keys] or
// [batch, queries, keys] of zeros and ones. Scores that are masked get `value` added.
absl::Status CheckPaddingMask(const InferContext& context, size_t input, const SizeList& scores);
void AddPaddingMask(const KernelContext& context, size_t input, const Shape& scores, float value,
                    std::vector<float>& bias);

// Checks a float operand that broadcasts to the scores.
absl::Status CheckAttentionBias(const InferContext& context, size_t input, const SizeList& scores);
void AddAttentionBias(const KernelContext& context, size_t input, const Shape& scores,
                      std::vector<float>& bias);

// Returns attribute `scale`, where 0 or nothing means 1 / sqrt(size).
float ScaleOf(const Attributes& attributes, int64_t size);

}  // namespace reprise::ops
