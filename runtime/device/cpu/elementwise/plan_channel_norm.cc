// InstanceNormalization, GroupNormalization and GlobalAveragePool. See channel_norm.h.
#include "runtime/device/cpu/elementwise/channel_norm.h"
#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/reduce/channel_norm_op.h"

namespace reprise::cpu {
namespace {

struct ChannelNormParams {
  const ChannelNormKernels* kernels = nullptr;
  ChannelNormArgs args;
  int64_t rows = 0;  // groups or planes of the whole batch
  int64_t batch_rows = 0;
};

ItemRange RowsOf(const ChannelNormParams& p, const LaunchArgs& launch) {
  return RangeOfPart(LiveOf(p.rows, p.batch_rows, *launch.frame), 1, launch.part, launch.parts);
}

void RunChannelNorm(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ChannelNormParams*>(launch.params);
  ChannelNormArgs args = p.args;
  args.x = static_cast<const float*>(launch.operands[0]);
  args.scale = static_cast<const float*>(launch.operands[1]);
  args.bias = static_cast<const float*>(launch.operands[2]);
  args.y = static_cast<float*>(launch.operands[3]);
  const ItemRange range = RowsOf(p, launch);
  p.kernels->norm(args, range.begin, range.end);
}

void RunGlobalAverage(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ChannelNormParams*>(launch.params);
  const ItemRange range = RowsOf(p, launch);
  p.kernels->averages(static_cast<const float*>(launch.operands[0]), p.args.plane,
                      static_cast<float*>(launch.operands[1]), range.begin, range.end);
}

// `groups` of channels an element. Rows are left out by whole elements only.
ChannelNormParams ParamsOf(const CpuTarget& target, const NodeView& node, int64_t groups) {
  const Shape& x = node.shape(0);
  ChannelNormParams p;
  p.kernels = &ChannelNormKernelsFor(target.isa);
  p.args.groups = groups;
  p.args.channels = x[1] / groups;
  p.args.plane = NumElements(x) / (x[0] * x[1]);
  p.rows = x[0] * groups;
  p.batch_rows = WholeBatchRows(node, x[0]);
  return p;
}

}  // namespace

std::vector<Candidate> PlanChannelNorm(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32) || NumElements(node.shape(0)) == 0) return {};
  const int64_t groups = node.op() == GroupNormalizationOp::kName
                             ? GroupNormalizationOp::From(node.attributes()).num_groups
                             : node.shape(0)[1];
  ChannelNormParams p = ParamsOf(target, node, groups);
  p.args.epsilon = GroupNormalizationOp::From(node.attributes()).epsilon;
  const double flops = 8.0 * static_cast<double>(NumElements(node.shape(0)));
  Candidate candidate = MakeCandidate(target, node, "channel_norm", RunChannelNorm, p, flops);
  candidate.option.in_place = 0;
  candidate.option.takes_live_rows = p.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanGlobalAverage(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32) || NumElements(node.shape(0)) == 0) return {};
  const ChannelNormParams p = ParamsOf(target, node, node.shape(0)[1]);
  Candidate candidate = MakeCandidate(target, node, "global_average", RunGlobalAverage, p,
                                      static_cast<double>(NumElements(node.shape(0))));
  candidate.option.takes_live_rows = p.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
