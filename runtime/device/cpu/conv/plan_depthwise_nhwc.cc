// Depthwise convolutions over NHWC planes; see depthwise_nhwc.h. Their sums equal the
// ones of plan_depthwise.cc to the bit.
#include <algorithm>

#include "runtime/device/cpu/conv/depthwise_nhwc.h"
#include "runtime/device/cpu/conv/plan_conv.h"

namespace reprise::cpu {
namespace {

struct DepthwiseLastParams : ConvLaunch {
  const LastPlaneKernels* kernels = nullptr;
  LastPlanes planes;  // operands are set by each launch
};

// Runs units: a unit is a pair of rows of the windows of one element of the batch.
void RunDepthwiseLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DepthwiseLastParams*>(launch.params);
  const Strips& s = p.planes.strips;
  const ConvOperands all = p.Operands(launch);
  LastPlanes planes = p.planes;
  planes.weights = all.weights;
  planes.bias = all.bias;
  const int64_t channels = planes.channels, row_floats = s.out.columns * channels;
  const int64_t pairs = (s.out.rows + 1) / 2;
  const ItemRange range = RangeOfPart(p.Live(launch) * pairs, 1, launch.part, launch.parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t element = unit / pairs, row = unit % pairs * 2;
    const ItemRange rows = {row, std::min(row + 2, s.out.rows)};
    const int64_t at = (element * s.out.rows + row) * row_floats;
    p.kernels->convolve(planes, all.x + element * s.in.rows * s.in.columns * channels, rows,
                        all.out + at);
    if (!planes.bounded) p.FinishRun(all, at, (rows.end - rows.begin) * row_floats);
  }
}

}  // namespace

std::vector<Candidate> PlanDepthwiseLast(const CpuTarget& target, const NodeView& node,
                                         const ops::Windows& windows, const Shape& spatial,
                                         const ConvActivation& activation) {
  constexpr size_t kMaxDims = 2;
  const Shape& weight = node.shape(1);
  if (spatial.size() > kMaxDims || weight[1] != 1 || weight[0] != node.shape(0).back() ||
      !node.is_parameter(1)) {
    return {};
  }
  DepthwiseLastParams p{ConvLaunch(target, node, activation)};
  p.kernels = &LastPlaneKernelsFor(target.isa);
  p.planes = {.strips = StripsOf(windows, spatial),
              .channels = weight[0],
              .bounded = p.OnlyClips(),
              .low = activation.low,
              .high = activation.high};
  const double flops = 2.0 * static_cast<double>(NumElements(node.out_shape())) *
                       static_cast<double>(p.planes.strips.num_taps());
  return ConvCandidates(target, node, "conv_depthwise_last", RunDepthwiseLast, std::move(p), flops,
                        {MapsLast(weight, 2)});
}

}  // namespace reprise::cpu
