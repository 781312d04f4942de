// ArgMax and ArgMin of floats.
#include <algorithm>
#include <limits>

#include "runtime/device/cpu/elementwise/arg_extremes.h"
#include "runtime/device/cpu/elementwise/elementwise_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/reduce/arg_op.h"

namespace reprise::cpu {
namespace {

// x seen as [outer, size, inner], the places as [outer, inner].
struct PlaceParams {
  const PlaceKernels* kernels = nullptr;
  PlaceOf of;
  int64_t outer = 0, size = 0, inner = 0;
  int64_t batch_rows = 0;  // batch rows along `outer`
};

// Columns that a part takes at a time.
constexpr int64_t kBlock = 1024;

void RunPlaces(const LaunchArgs& launch) {
  const auto& p = *static_cast<const PlaceParams*>(launch.params);
  const auto* x = static_cast<const float*>(launch.operands[0]);
  auto* places = static_cast<int64_t*>(launch.operands[1]);
  const int64_t live = LiveOf(p.outer, p.batch_rows, *launch.frame);
  const int64_t blocks = (p.inner + kBlock - 1) / kBlock;
  const ItemRange units = RangeOfPart(live * blocks, 1, launch.part, launch.parts);
  if (p.inner == 1) return p.kernels->rows(p.of, x, p.size, units.begin, units.end, places);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const int64_t o = unit / blocks, column = unit % blocks * kBlock;
    p.kernels->columns(p.of, x + o * p.size * p.inner + column, p.inner, p.size,
                       std::min(kBlock, p.inner - column), places + o * p.inner + column);
  }
}

}  // namespace

std::vector<Candidate> PlanPlaces(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32) return {};
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(ArgMaxOp::From(node.attributes()).axis, node.rank(0));
  if (!axis.ok()) return {};
  const absl::Span<const int64_t> shape = node.shape(0);
  PlaceParams params;
  params.kernels = &PlaceKernelsFor(target.isa);
  params.of = {.largest = node.op() == ArgMaxOp::kName,
               .last = ArgMaxOp::From(node.attributes()).select_last_index};
  params.outer = NumElements(shape.first(*axis));
  params.size = shape[*axis];
  params.inner = NumElements(shape.subspan(*axis + 1));
  if (params.size > std::numeric_limits<int32_t>::max()) return {};
  // Along the batch there are no rows to leave out.
  params.batch_rows = *axis == 0 ? 0 : node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, "places", RunPlaces, params,
                                      static_cast<double>(NumElements(shape)));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
