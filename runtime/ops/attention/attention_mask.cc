#include "runtime/ops/attention/attention_mask.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/broadcast.h"

namespace reprise::ops {
namespace {

// Calls f(b, q, k, bias[b, h, q, k]).
template <typename F>
void ForEachScore(const Shape& scores, std::vector<float>& bias, F f) {
  bias.resize(NumElements(scores), 0.0f);
  float* at = bias.data();
  for (int64_t b = 0; b < scores[0]; ++b) {
    for (int64_t h = 0; h < scores[1]; ++h) {
      for (int64_t q = 0; q < scores[2]; ++q) {
        for (int64_t k = 0; k < scores[3]; ++k) f(b, q, k, *at++);
      }
    }
  }
}

void AddPaddingMask(const KernelContext& context, size_t input, const Shape& scores, float value,
                    std::vector<float>& bias) {
  const std::vector<int64_t> mask = Int64sOf(context, input);
  const Shape& shape = context.inputs[input].shape;
  const int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  ForEachScore(scores, bias, [&](int64_t b, int64_t q, int64_t k, float& at) {
    bool keep = true;
    if (shape.size() == 1) {
      keep = k < mask[b] && (shape[0] == batch || k >= mask[batch + b]);
    } else if (shape.size() == 2) {
      keep = mask[b * keys + k] > 0;
    } else {
      keep = mask[(b * queries + q) * keys + k] > 0;
    }
    if (!keep) at += value;
  });
}

}  // namespace

absl::Status CheckPaddingMask(const InferContext& context, size_t input, const SizeList& scores) {
  RETURN_IF_ERROR(CheckType(context, input, kIndices));
  const SizeList& mask = context.shape(input);
  const Size batch = scores[0], queries = scores[2], keys = scores[3];
  if (mask == SizeList{batch} || mask == SizeList{2 * batch} || mask == SizeList{batch, keys} ||
      mask == SizeList{batch, queries, keys}) {
    return absl::OkStatus();
  }
  const std::string what =
      absl::StrCat("a mask of shape ", ShapeToString(mask), " for scores ", ShapeToString(scores));
  // Other sizes of its rows may fit.
  if (mask.size() == 2 || mask.size() == 3) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": it does not cover them"));
  }
  return absl::UnimplementedError(absl::StrCat(what, " is not supported"));
}

absl::Status CheckAttentionBias(const InferContext& context, size_t input, const SizeList& scores) {
  RETURN_IF_ERROR(CheckType(context, input, TypeBit(DType::kFloat32)));
  ASSIGN_OR_RETURN(const SizeList broadcast, BroadcastShapes(scores, context.shape(input)));
  if (broadcast != scores) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", input, " does not broadcast to ", ShapeToString(scores)));
  }
  return absl::OkStatus();
}

std::vector<float> MicrosoftBias(const KernelContext& context, const Shape& scores, size_t mask,
                                 size_t attention_bias, int64_t past) {
  const Attributes& attributes = context.node.attributes;
  std::vector<float> bias;
  if (HasInput(context, mask)) {
    AddPaddingMask(context, mask, scores, attributes.Float("mask_filter_value", -10000), bias);
  }
  if (attributes.Int("unidirectional", 0) != 0) {
    ForEachScore(scores, bias, [&](int64_t, int64_t q, int64_t k, float& at) {
      if (k > q + past) at = std::numeric_limits<float>::lowest();
    });
  }
  if (HasInput(context, attention_bias)) {
    const TensorView& more = context.inputs[attention_bias];
    bias.resize(NumElements(scores), 0.0f);
    BroadcastApply(scores, bias.data(), bias.data(), scores, more.as<float>(), more.shape,
                   [](float a, float b) { return a + b; });
  }
  return bias;
}

float ScaleOf(const Attributes& attributes, int64_t size) {
  const float scale = attributes.Float("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(size));
}

}  // namespace reprise::ops
