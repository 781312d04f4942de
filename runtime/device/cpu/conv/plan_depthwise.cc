// Depthwise convolutions: nothing is shared between the maps of different channels, so that a
// product has nothing to read twice. See depthwise_nchw.h, and window_tiles.h for windows of other
// sizes.
#include "runtime/device/cpu/conv/conv_launch.h"
#include "runtime/device/cpu/conv/conv_plans.h"
#include "runtime/device/cpu/conv/depthwise_nchw.h"
#include "runtime/device/cpu/conv/window_tiles.h"

namespace reprise::cpu {
namespace {

// The planes of one row that a part takes at a time, so that no part waits long for the others.
constexpr int64_t kRowsOfPart = 4;
// Sums that stay in the L1 cache until they are finished.
constexpr int64_t kUnfinishedFloats = 2 << 10;

struct DepthwiseParams : ConvLaunch {
  const StripKernels* kernels = nullptr;
  PlaneConvolve in_place = nullptr;  // null: the elements of a strip's windows are copied
  Strips strips;
  int64_t groups = 0, group_maps = 0;
};

// Sums that wait for their epilogue: a run of the results, which strips of whole rows extend. The
// lanes of a vector across the end of a row and the begin of the next one are finished together,
// long after they were stored, so that no load waits for a store.
class Unfinished {
 public:
  Unfinished(const DepthwiseParams& p, const ConvOperands& all) : p_(p), all_(all) {}

  // Adds a strip whose first element is at `first` of the results.
  void Add(int64_t first, const Strips::Extent& size) {
    const int64_t columns = p_.strips.out.columns;
    if (size.columns != columns) return FinishStrip(first, size);
    if (first != end_) {
      Flush();
      begin_ = end_ = first;
    }
    end_ += size.rows * columns;
    if (end_ - begin_ >= kUnfinishedFloats) Flush();
  }
  void Flush() {
    if (end_ > begin_) p_.FinishRun(all_, begin_, end_ - begin_);
    begin_ = end_;
  }

 private:
  void FinishStrip(int64_t first, const Strips::Extent& size) const {
    const int64_t ld = p_.strips.out.columns;
    p_.finish({.y = all_.out + first,
               .ld = ld,
               .rows = size.rows,
               .columns = size.columns,
               .residual = all_.ResidualAt(first),
               .ld_residual = ld},
              p_.activation);
  }

  const DepthwiseParams& p_;
  const ConvOperands& all_;
  int64_t begin_ = 0, end_ = 0;
};

// Computes the windows of one strip in each map of a channel.
void RunStrip(const DepthwiseParams& p, const ConvOperands& all, int64_t plane, const Strip& strip,
              Unfinished& unfinished) {
  const Strips& s = p.strips;
  const int64_t out_plane = s.out.rows * s.out.columns;
  const float* const from = all.x + plane * s.in.rows * s.in.columns;
  if (p.in_place == nullptr) p.kernels->copy(s, strip, from, 0, all.scratch);
  const bool bounded = p.OnlyClips();
  for (int64_t m = 0; m < p.group_maps; ++m) {
    const int64_t map = plane % p.groups * p.group_maps + m;
    const int64_t at = (plane * p.group_maps + m) * out_plane;
    const StripBounds bounds = {.bias = all.bias == nullptr ? 0 : all.bias[map],
                                .bounded = bounded,
                                .low = p.activation.low,
                                .high = p.activation.high};
    if (p.in_place != nullptr) {
      p.in_place(s, {strip.first.rows, strip.first.rows + strip.size.rows}, from,
                 all.weights + map * s.num_taps(), bounds, all.out + at);
    } else {
      p.kernels->convolve(s, strip, all.scratch, all.weights + map * s.num_taps(), bounds,
                          all.out + at);
    }
    if (bounded) continue;
    unfinished.Add(at + strip.first.rows * s.out.columns + strip.first.columns, strip.size);
  }
}

void RunDepthwise(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DepthwiseParams*>(launch.params);
  const int64_t per_plane = p.strips.per_plane();
  const int64_t units = p.Live(launch) * p.groups * per_plane;
  const int parts = p.Parts(launch, units);
  if (launch.part >= parts) return;
  const ConvOperands all = p.Operands(launch);
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  Unfinished unfinished(p, all);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    RunStrip(p, all, unit / per_plane, StripOf(p.strips, unit % per_plane), unfinished);
  }
  unfinished.Flush();
}

}  // namespace

std::vector<Candidate> PlanDepthwise(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial) {
  const Shape &x = node.shape(0), &weight = node.shape(1);
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (x.size() > Strips::kMaxDims + 2 || !activation.has_value()) return {};
  DepthwiseParams p{ConvLaunch(target, node, *activation)};
  p.kernels = &StripKernelsFor(target.isa);
  p.groups = x[1];
  p.group_maps = weight[0] / p.groups;
  const int64_t planes = p.batch * p.groups;
  p.strips = PlanStrips(windows, spatial, planes, target.scratch_parts);
  // A row is not divided where it is read in place.
  if (p.strips.out.rows > 1 || planes >= kRowsOfPart * target.scratch_parts) {
    p.in_place = PlaneKernelsFor(target.isa).convolve(p.strips);
  }
  if (p.in_place != nullptr) {
    p.strips.SetStrip(WholeRows(p.strips, planes, target.scratch_parts));
  } else if (p.strips.CopyFloats() > Strips::kMaxCopy) {
    return {};
  }
  if (p.in_place == nullptr) p.scratch_floats = p.strips.CopyFloats();
  const double flops = 2.0 * static_cast<double>(NumElements(node.out_shape())) *
                       static_cast<double>(p.strips.num_taps());
  return ConvCandidates(target, node, "conv_depthwise", RunDepthwise, std::move(p), flops);
}

}  // namespace reprise::cpu
