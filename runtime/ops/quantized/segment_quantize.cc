#include "runtime/ops/quantized/segment_quantize.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/quantized/quantize.h"

namespace reprise::ops {

absl::Status SegmentDynamicQuantizeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  if (context.rank(0) < 2) {
    return absl::InvalidArgumentError("input 0 has no rows that could have a scale of their own");
  }
  if (context.has_input(1)) RETURN_IF_ERROR(CheckSegments(context, 1));
  SizeList lines = context.shape(0);
  lines.back() = 1;
  context.SetOutput(0, DType::kUInt8, context.shape(0));
  context.SetOutput(1, DType::kFloat32, lines);
  context.SetOutput(2, DType::kUInt8, std::move(lines));
  return absl::OkStatus();
}

absl::Status SegmentDynamicQuantizeKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const int64_t tokens = in.shape[0], width = in.shape.back();
  const int64_t row = NumElements(absl::MakeConstSpan(in.shape).subspan(1));
  const int64_t lines = NumElements(absl::MakeConstSpan(in.shape).subspan(1, in.shape.size() - 2));
  const int32_t whole[] = {0, static_cast<int32_t>(tokens)};
  const bool has_segments = HasInput(context, 1);
  const int32_t* segments = has_segments ? context.inputs[1].as<int32_t>() : whole;
  const int64_t count = has_segments ? context.inputs[1].shape[0] - 1 : 1;
  for (int64_t s = 0; s < count; ++s) {
    const SegmentRange segment = SegmentAt(segments, s, tokens);
    const float* x = in.as<float>() + segment.begin * row;
    const DynamicScale scale = DynamicScaleOf(x, segment.size() * row);
    if (HasOutput(context, 0) && width > 0) {
      QuantizeBytes(x, segment.size() * row, scale,
                    context.outputs[0].as<uint8_t>() + segment.begin * row);
    }
    const int64_t first = segment.begin * lines, of_lines = segment.size() * lines;
    if (HasOutput(context, 1)) {
      std::fill_n(context.outputs[1].as<float>() + first, of_lines, scale.scale);
    }
    if (HasOutput(context, 2)) {
      std::fill_n(context.outputs[2].as<uint8_t>() + first, of_lines, scale.zero_point);
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
