// Depthwise convolutions over planes that leave vectors of a row empty, and of large windows over
// small planes. Such planes are transposed, the convolution goes over several channels at once, and
// its results are transposed back. See depthwise_small.h; plan_depthwise.cc computes other planes,
// with the same sums to the bit.
#include <algorithm>

#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/depthwise_nchw.h"
#include "runtime/device/cpu/conv/depthwise_small.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/simd/transpose.h"

namespace reprise::cpu {
namespace {

// The limit on the planes of a vector of channels, in floats: they stay in the L2 cache.
constexpr int64_t kMaxFloats = 32 << 10;
// Costs that decide whether transposing pays, in cycles measured on an AMD Zen 5. Transposed: a
// multiply-add of several channels, and an element on its way in or out. In place: a vector of a
// row per tap where windows move by one, by more, or along one dim, whose taps are loads across two
// cache lines; and the fixed cost of such a vector.
constexpr double kTurnedStep = 0.9, kTurnedElement = 0.43;
constexpr double kInPlaceStep = 1.1, kStridedStep = 1.85, kRowStep = 2.2, kInPlaceVector = 5;
constexpr double kCopiedElement = 0.3, kGatheredElement = 1.5;
// In a model, planes come from farther away, so that transposing has to gain more than a little.
constexpr double kWorthwhile = 1.25;
// Windows of one row at a time.
constexpr int64_t kMostRowWindows = 128;

struct DepthwiseChannelsParams : ConvLaunch {
  const ChannelKernels* kernels = nullptr;
  Transpose transpose = nullptr;
  Strips strips;  // windows of a strip: all, or some of a plane of one row
  ChannelPlanes planes;
  int64_t channels = 0;

  int64_t lanes() const { return kernels->lanes; }
  int64_t in_plane() const { return strips.in.rows * strips.in.columns; }
  int64_t out_plane() const { return strips.out.rows * strips.out.columns; }
  // Returns the sizes of the pieces of a part's scratch: a transposed plane, the same with its
  // padding, and the results. A plane of one row is transposed directly into its padding.
  int64_t turned_floats() const { return strips.IsRow() ? 0 : in_plane() * lanes(); }
  int64_t padded_floats() const { return planes.padded.rows * planes.padded.columns * lanes(); }
  int64_t result_floats() const { return planes.out.rows * planes.out.columns * lanes(); }
};

// Returns whether several channels together take less time than one after the other.
bool TurningPays(const CpuTarget& target, const Strips& s, int64_t lanes) {
  const auto out = static_cast<double>(s.out.rows * s.out.columns);
  const auto in = static_cast<double>(s.in.rows * s.in.columns);
  const auto taps = static_cast<double>(s.num_taps());
  const auto vectors = static_cast<double>(s.out.rows * ((s.out.columns + lanes - 1) / lanes));
  const double step = s.IsRow()                                       ? kRowStep
                      : std::max(s.stride.rows, s.stride.columns) > 1 ? kStridedStep
                                                                      : kInPlaceStep;
  const double copied = PlaneKernelsFor(target.isa).convolve(s) != nullptr ? 0
                        : s.stride.columns > 2                             ? kGatheredElement
                                                                           : kCopiedElement;
  const double turned =
      kTurnedStep * out * taps / static_cast<double>(lanes) + kTurnedElement * (in + out);
  return kWorthwhile * turned < vectors * (step * taps + kInPlaceVector) + copied * in;
}

// Copies the planes at `turned` into the middle of those at `padded`; the border stays as it is.
void CopyInside(const DepthwiseChannelsParams& p, const float* turned, float* padded) {
  const Strips& s = p.strips;
  const Strips::Extent whole = p.planes.padded;
  const int64_t rows = std::min(s.in.rows, whole.rows - s.pad.rows);
  const int64_t columns = std::min(s.in.columns, whole.columns - s.pad.columns);
  if (columns <= 0) return;
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(turned + row * s.in.columns * p.lanes(), columns * p.lanes(),
                padded + ((row + s.pad.rows) * whole.columns + s.pad.columns) * p.lanes());
  }
}

// Transposes the elements of `live` rows at `x` under the windows from `window` on, with zeros
// around them.
void TurnRows(const DepthwiseChannelsParams& p, const float* x, int64_t live, int64_t window,
              float* padded) {
  const int64_t columns = p.planes.padded.columns, in = p.strips.in.columns;
  const int64_t left = window * p.strips.stride.columns - p.strips.pad.columns;
  const int64_t begin = std::clamp<int64_t>(-left, 0, columns);
  const int64_t end = std::clamp(in - left, begin, columns);
  std::fill(padded, padded + begin * p.lanes(), 0.0f);
  p.transpose(x + left + begin, in, live, end - begin, padded + begin * p.lanes(), p.lanes());
  std::fill(padded + end * p.lanes(), padded + columns * p.lanes(), 0.0f);
}

// Computes the planes of batch element `element`, channels from `channel` on; for planes of one
// row, the windows of strip `index`.
void RunChannels(const DepthwiseChannelsParams& p, const ConvOperands& all, int64_t element,
                 int64_t channel, int64_t index) {
  const int64_t live = std::min(p.lanes(), p.channels - channel);
  const int64_t plane = element * p.channels + channel, out_plane = p.out_plane();
  float* const turned = all.scratch;
  float* const padded = turned + p.turned_floats();
  float* const y = padded + p.padded_floats();
  const Strip strip = StripOf(p.strips, index);
  const int64_t window = strip.first.columns;  // 0 unless the plane is a row
  const int64_t windows = strip.size.rows * strip.size.columns;
  const float* const from = all.x + plane * p.in_plane();
  if (p.strips.IsRow()) {
    TurnRows(p, from, live, window, padded);
  } else {
    p.transpose(from, p.in_plane(), live, p.in_plane(), turned, p.lanes());
    CopyInside(p, turned, padded);
  }
  const bool bounded = p.OnlyClips();
  p.kernels->convolve(p.planes, padded,
                      {.weights = all.weights + channel,
                       .ld = p.channels,
                       .bias = all.BiasOf(channel),
                       .live = live,
                       .bounded = bounded,
                       .low = p.activation.low,
                       .high = p.activation.high},
                      y);
  const int64_t at = plane * out_plane + window;
  p.transpose(y, p.lanes(), windows, live, all.out + at, out_plane);
  if (bounded) return;
  p.finish({.y = all.out + at,
            .ld = out_plane,
            .rows = live,
            .columns = windows,
            .residual = all.ResidualAt(at),
            .ld_residual = out_plane},
           p.activation);
}

void RunDepthwiseChannels(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DepthwiseChannelsParams*>(launch.params);
  const int64_t blocks = (p.channels + p.lanes() - 1) / p.lanes();
  const int64_t strips = p.strips.per_plane();
  const int64_t units = p.Live(launch) * blocks * strips;
  const int parts = p.Parts(launch, units);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  // The padding, and lanes that no channel has.
  std::fill_n(all.scratch, p.scratch_floats, 0.0f);
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t block = unit / strips;
    RunChannels(p, all, block / blocks, block % blocks * p.lanes(), unit % strips);
  }
}

}  // namespace

std::vector<Candidate> PlanDepthwiseChannels(const CpuTarget& target, const NodeView& node,
                                             const ops::Windows& windows, const Shape& spatial) {
  const Shape &x = node.shape(0), &weight = node.shape(1);
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (x.size() > Strips::kMaxDims + 2 || !activation.has_value() || !node.is_parameter(1) ||
      weight[0] != x[1]) {
    return {};
  }
  DepthwiseChannelsParams p{ConvLaunch(target, node, *activation)};
  p.kernels = &ChannelKernelsFor(target.isa);
  p.strips = StripsOf(windows, spatial);
  p.strips.strip = p.strips.out;
  if (p.lanes() == 1 || p.strips.num_taps() == 1 || x[1] < p.lanes() ||
      !TurningPays(target, p.strips, p.lanes())) {
    return {};
  }
  if (p.strips.IsRow()) p.strips.strip.columns = Even(p.strips.out.columns, kMostRowWindows);
  p.planes = ChannelPlanesOf(p.strips, p.lanes());
  p.scratch_floats = p.turned_floats() + p.padded_floats() + p.result_floats();
  if (p.scratch_floats > kMaxFloats) return {};
  p.transpose = TransposeFor(target.isa);
  p.channels = x[1];
  const int64_t taps = p.strips.num_taps();
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(taps);
  return ConvCandidates(target, node, "conv_depthwise_channels", RunDepthwiseChannels, std::move(p),
                        flops, {MapsLast(weight, 2)});
}

}  // namespace reprise::cpu
