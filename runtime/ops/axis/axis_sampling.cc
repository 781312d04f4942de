// Axis rules of ops that sample their operand at places that are data.
#include <algorithm>

#include "runtime/ops/axis/axis_rules.h"

namespace reprise::ops {
namespace {

// Positions of an operand go to dim `dim` of the result. The padding there is not known, since its
// places still sample something.
void Take(AxisFlowValue& flow, Positions positions, int64_t dim) {
  positions.dim = dim;
  positions.padding = PaddingValue::Unknown();
  const auto at = std::lower_bound(flow.along.begin(), flow.along.end(), dim,
                                   [](const Positions& p, int64_t d) { return p.dim < d; });
  if (at == flow.along.end() || at->dim != dim) {
    flow.along.insert(at, positions);
    return;
  }
  at->guarded |= positions.guarded;
  at->settled &= positions.settled;
  at->moved |= positions.moved;
  at->repeated |= positions.repeated;
}

// Both operands of a node have positions along their dims 0, side by side in the same way, or none
// has.
bool GoTogether(const AxisContext& context, size_t a, size_t b) {
  const Positions* first = context.input(a).At(0);
  const Positions* second = context.input(b).At(0);
  if (first == nullptr || second == nullptr) return first == second;
  return first->inner == second->inner;
}

}  // namespace

// x [batch, channels, dims...] at the places of grid [batch, out dims..., dims]: from one side of x
// to the other, wherever its end is.
void GridSampleAxis(AxisContext& context) {
  AxisFlowValue flow;
  if (!GoTogether(context, 0, 1)) context.Doubt("samples with one grid the elements of");
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim < 2) {
      Take(flow, positions, positions.dim);
    } else {
      context.Mix("samples at places between both ends of", /*guarded=*/false);
    }
  }
  for (const Positions& positions : context.input(1).along) {
    if (positions.dim == 0) {
      Take(flow, positions, 0);
    } else if (positions.dim + 1 < context.rank(1)) {
      Take(flow, positions, positions.dim + 1);
    } else {
      context.Doubt("takes coordinates from the positions of");
    }
  }
  context.Set(0, std::move(flow));
}

// Regions of images: each finds its image by its place in the batch, and may reach past the
// image's end.
void RoiAlignAxis(AxisContext& context) {
  AxisFlowValue flow;
  if (!GoTogether(context, 1, 2)) context.Doubt("takes one element for all regions, which are");
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == 1) {
      Take(flow, positions, 1);
    } else {
      context.Mix("takes regions by their places in", /*guarded=*/false);
    }
  }
  for (size_t i : {1, 2}) {
    for (const Positions& positions : context.input(i).along) {
      if (positions.dim == 0) {
        Take(flow, positions, 0);
      } else {
        context.Doubt("takes coordinates from the positions of");
      }
    }
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops
