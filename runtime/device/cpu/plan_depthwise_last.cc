// Convolutions of each channel by itself over planes whose channels lie last; see last_planes.h.
// Their sums are those of plan_depthwise.cc to the bit.
#include <algorithm>

#include "runtime/device/cpu/last_planes.h"
#include "runtime/device/cpu/plan_conv.h"

namespace reprise::cpu {
namespace {

struct DepthwiseLastParams {
  const LastPlaneKernels* kernels = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  LastPlanes planes;  // without operands
  int64_t batch = 0, batch_rows = 0;
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0;
};

// A unit is a pair of rows of the windows of one element of the batch.
void RunDepthwiseLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DepthwiseLastParams*>(launch.params);
  const Strips& s = p.planes.strips;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* residual =
      p.residual < 0 ? nullptr : static_cast<const float*>(launch.operands[p.residual]);
  auto* out = static_cast<float*>(launch.operands[p.out]);
  LastPlanes planes = p.planes;
  planes.weights = static_cast<const float*>(launch.operands[1]);
  if (p.has_bias) planes.bias = static_cast<const float*>(launch.operands[2]);
  const int64_t channels = planes.channels, row_floats = s.out.columns * channels;
  const int64_t pairs = (s.out.rows + 1) / 2;
  const int64_t live = LiveOf(p.batch, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live * pairs, 1, launch.part, launch.parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t element = unit / pairs, row = unit % pairs * 2;
    const ItemRange rows = {row, std::min(row + 2, s.out.rows)};
    const int64_t at = (element * s.out.rows + row) * row_floats;
    p.kernels->convolve(planes, x + element * s.in.rows * s.in.columns * channels, rows, out + at);
    if (planes.bounded) continue;
    const int64_t floats = (rows.end - rows.begin) * row_floats;
    p.finish({.y = out + at,
              .ld = floats,
              .rows = 1,
              .columns = floats,
              .residual = residual == nullptr ? nullptr : residual + at,
              .ld_residual = floats},
             p.activation);
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
  DepthwiseLastParams p;
  p.kernels = &LastPlaneKernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = activation;
  if (node.has_input(3)) p.residual = 3;
  p.has_bias = node.has_input(2);
  p.planes = {.strips = StripsOf(windows, spatial),
              .channels = weight[0],
              .bounded = activation.clip() && p.residual < 0,
              .low = activation.low,
              .high = activation.high};
  p.batch = node.shape(0)[0];
  p.batch_rows = WholeBatchRows(node, p.batch);
  p.out = static_cast<int>(node.num_inputs());
  const double flops = 2.0 * static_cast<double>(NumElements(node.out_shape())) *
                       static_cast<double>(p.planes.strips.num_taps());
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate =
      MakeCandidate(target, node, "conv_depthwise_last", RunDepthwiseLast, std::move(p), flops);
  candidate.option.takes_live_rows = takes_live_rows;
  candidate.option.prepare.push_back(MapsLast(weight, 2));
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
