// Convolutions of each channel by itself: nothing is shared between the maps of different channels,
// so that a product has nothing to read twice. See planes.h, and strips.h for windows of other
// forms.
#include "runtime/device/cpu/conv_finish.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/planes.h"
#include "runtime/device/cpu/strips.h"

namespace reprise::cpu {
namespace {

constexpr size_t kMaxDims = 2;
// Of a copy, in floats: dilations that reach farther than this are for the plain loops.
constexpr int64_t kMaxCopy = 1 << 20;
// Planes of one row a part, so that none waits long for the others.
constexpr int64_t kRowsOfPart = 4;
// Sums that stay in the first-level cache until they are finished.
constexpr int64_t kUnfinishedFloats = 2 << 10;

struct DepthwiseParams {
  const StripKernels* kernels = nullptr;
  PlaneConvolve in_place = nullptr;  // null: what a strip's windows see is copied
  ConvFinish finish = nullptr;
  ConvActivation activation;
  Strips strips;
  int64_t batch = 0, batch_rows = 0;
  int64_t groups = 0, group_maps = 0;
  bool has_bias = false;
  int residual = -1;  // among the operands
  int out = 0, workspace = 0;
  int scratch_parts = 0;
};

// Sums that wait for what follows on them: a run of the results, which strips of whole rows make
// longer. What a vector has of the end of a row and the begin of the next one is finished at once,
// and long after it was stored, so that no load waits for a store.
class Unfinished {
 public:
  Unfinished(const DepthwiseParams& p, const LaunchArgs& launch)
      : p_(p),
        out_(static_cast<float*>(launch.operands[p.out])),
        residual_(p.residual < 0 ? nullptr
                                 : static_cast<const float*>(launch.operands[p.residual])) {}

  // A strip whose first element is at `first` of the results.
  void Add(int64_t first, const Strips::Extent& size) {
    const int64_t columns = p_.strips.out.columns;
    if (size.columns != columns) return Finish(first, size.rows, size.columns);
    if (first != end_) {
      Flush();
      begin_ = end_ = first;
    }
    end_ += size.rows * columns;
    if (end_ - begin_ >= kUnfinishedFloats) Flush();
  }
  void Flush() {
    if (end_ > begin_) Finish(begin_, 1, end_ - begin_);
    begin_ = end_;
  }

 private:
  void Finish(int64_t first, int64_t rows, int64_t columns) const {
    const int64_t ld = p_.strips.out.columns;
    p_.finish({.y = out_ + first,
               .ld = ld,
               .rows = rows,
               .columns = columns,
               .residual = residual_ == nullptr ? nullptr : residual_ + first,
               .ld_residual = ld},
              p_.activation);
  }

  const DepthwiseParams& p_;
  float* const out_;
  const float* const residual_;
  int64_t begin_ = 0, end_ = 0;
};

// The windows of one strip in each map of a channel.
void RunStrip(const DepthwiseParams& p, const LaunchArgs& launch, int64_t plane, const Strip& strip,
              float* copied, Unfinished& unfinished) {
  const Strips& s = p.strips;
  const int64_t out_plane = s.out.rows * s.out.columns;
  const auto* x = static_cast<const float*>(launch.operands[0]);
  const auto* weights = static_cast<const float*>(launch.operands[1]);
  const auto* bias = p.has_bias ? static_cast<const float*>(launch.operands[2]) : nullptr;
  auto* out = static_cast<float*>(launch.operands[p.out]);
  const float* const from = x + plane * s.in.rows * s.in.columns;
  if (p.in_place == nullptr) p.kernels->copy(s, strip, from, 0, copied);
  const bool bounded = p.activation.clip() && p.residual < 0;
  for (int64_t m = 0; m < p.group_maps; ++m) {
    const int64_t map = plane % p.groups * p.group_maps + m;
    const int64_t at = (plane * p.group_maps + m) * out_plane;
    const StripBounds bounds = {.bias = bias == nullptr ? 0 : bias[map],
                                .bounded = bounded,
                                .low = p.activation.low,
                                .high = p.activation.high};
    if (p.in_place != nullptr) {
      p.in_place(s, {strip.first.rows, strip.first.rows + strip.size.rows}, from,
                 weights + map * s.num_taps(), bounds, out + at);
    } else {
      p.kernels->convolve(s, strip, copied, weights + map * s.num_taps(), bounds, out + at);
    }
    if (bounded) continue;
    unfinished.Add(at + strip.first.rows * s.out.columns + strip.first.columns, strip.size);
  }
}

void RunDepthwise(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DepthwiseParams*>(launch.params);
  const int64_t per_plane = p.strips.per_plane();
  const int64_t units = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.groups * per_plane;
  const bool in_place = p.in_place != nullptr;
  const int parts = in_place ? launch.parts : PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  float* const copied = in_place ? nullptr
                                 : static_cast<float*>(launch.operands[p.workspace]) +
                                       launch.part * p.strips.CopyFloats();
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  Unfinished unfinished(p, launch);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    RunStrip(p, launch, unit / per_plane, StripOf(p.strips, unit % per_plane), copied, unfinished);
  }
  unfinished.Flush();
}

}  // namespace

std::vector<Candidate> PlanDepthwise(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial) {
  const Shape &x = node.shape(0), &weight = node.shape(1);
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (x.size() > kMaxDims + 2 || !activation.has_value()) return {};
  DepthwiseParams p;
  p.kernels = &StripKernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  p.batch = x[0];
  p.batch_rows = WholeBatchRows(node, p.batch);
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
  } else if (p.strips.CopyFloats() > kMaxCopy) {
    return {};
  }
  p.has_bias = node.has_input(2);
  if (node.has_input(3)) p.residual = 3;
  p.out = static_cast<int>(node.num_inputs());
  p.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  p.scratch_parts = target.scratch_parts;
  const size_t workspace =
      p.in_place != nullptr ? 0 : sizeof(float) * p.strips.CopyFloats() * p.scratch_parts;
  const double flops = 2.0 * static_cast<double>(NumElements(node.out_shape())) *
                       static_cast<double>(p.strips.num_taps());
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate =
      MakeCandidate(target, node, "conv_depthwise", RunDepthwise, std::move(p), flops);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
