// Quantising by the range of a request: reprise.SegmentDynamicQuantizeLinear.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/quantize.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/quantized/quantize.h"

namespace reprise::cpu {
namespace {

using ops::SegmentAt;
using ops::SegmentRange;

struct SegmentQuantizeParams {
  const QuantizeKernels* kernels = nullptr;
  int64_t tokens = 0, segments = 1;
  int64_t row = 0, lines = 0;  // elements and scales of a token
  bool has_segments = false;
  int y = 0;  // operand; the scale and the zero point follow
};

// Quantises the live tokens, which lie one after another, and each part takes an equal share of
// them, wherever segments end. A part reads all of each segment that it shares, because no part can
// know the range of a segment before the others are done.
void RunSegmentQuantize(const LaunchArgs& launch) {
  const auto& p = *static_cast<const SegmentQuantizeParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const int32_t whole[] = {0, static_cast<int32_t>(p.tokens)};
  const int32_t* segments =
      p.has_segments ? static_cast<const int32_t*>(launch.operands[1]) : whole;
  auto* y = static_cast<uint8_t*>(launch.operands[p.y]);
  auto* scales = static_cast<float*>(launch.operands[p.y + 1]);
  auto* zeros = static_cast<uint8_t*>(launch.operands[p.y + 2]);
  const QuantizeFunction quantize = p.kernels->quantize(DType::kUInt8, /*many=*/false);
  const int64_t live = p.segments == 0 ? 0 : SegmentAt(segments, p.segments - 1, p.tokens).end;
  const ItemRange share = RangeOfPart(live, 1, launch.part, launch.parts);
  for (int64_t s = 0; s < p.segments; ++s) {
    const SegmentRange segment = SegmentAt(segments, s, p.tokens);
    const int64_t begin = std::max(segment.begin, share.begin);
    const int64_t count = std::min(segment.end, share.end) - begin;
    if (count <= 0) continue;
    float low = 0, high = 0;
    p.kernels->range(x + segment.begin * p.row, segment.size() * p.row, low, high);
    const ops::DynamicScale scale = ops::DynamicScaleOfRange(low, high);
    quantize(x + begin * p.row, &scale.scale, &scale.zero_point, y + begin * p.row, count * p.row);
    std::fill_n(scales + begin * p.lines, count * p.lines, scale.scale);
    std::fill_n(zeros + begin * p.lines, count * p.lines, scale.zero_point);
  }
}

}  // namespace

std::vector<Candidate> PlanSegmentQuantize(const CpuTarget& target, const NodeView& node) {
  for (size_t i : {0, 1, 2}) {
    if (!node.has_output(i)) return {};
  }
  SegmentQuantizeParams p;
  p.kernels = &QuantizeKernelsFor(target.isa);
  const absl::Span<const int64_t> shape = node.shape(0);
  p.tokens = shape[0];
  p.row = NumElements(shape.subspan(1));
  p.lines = NumElements(shape.subspan(1, shape.size() - 2));
  p.has_segments = node.has_input(1);
  if (p.has_segments) p.segments = node.shape(1)[0] - 1;
  p.y = static_cast<int>(node.num_inputs());
  Candidate candidate = MakeCandidate(target, node, "segment_quantize", RunSegmentQuantize, p,
                                      5.0 * static_cast<double>(p.tokens * p.row));
  candidate.option.takes_live_rows = p.has_segments;
  candidate.bound.detail =
      absl::StrCat(p.tokens, " tokens of ", p.row, " in at most ", p.segments, " requests");
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
