// Maps of ops whose elements are made of the elements at their places.
#include <algorithm>

#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/reshape_op.h"

namespace reprise::ops {

void ElementwiseMap(MapContext& context) { context.BroadcastAll(); }

// Dims from the first one on that differs are split and joined. A Squeeze that names no dims drops
// any that has one place.
void ViewMap(MapContext& context) {
  if (context.node().op == SqueezeOp::kName && !context.has_input(1)) return context.Unknown();
  const int64_t dims = std::min(context.rank(0), context.out_rank());
  int64_t same = 0;
  while (same < dims && context.shape(0)[same] == context.out()[same]) ++same;
  context.Parallel(0, 0, same, 0);
  if (same < context.out_rank()) {
    for (int64_t d = same; d < context.rank(0); ++d) context.Set(0, d, Link::kMixed, same);
  }
  context.Says("splits or joins");
}

void FirstMap(MapContext& context) { context.Parallel(0, 0, context.rank(0), 0); }

// Takes one scale for all, or one for each place along an axis; blocks of places are not told
// apart.
void QuantisationMap(MapContext& context) {
  constexpr size_t kScale = 1, kZeroPoint = 2;
  FirstMap(context);
  if (NumElements(context.shape(kScale)) == 1) return;
  const int64_t axis = context.Axis(FactsOf(context.node().op).axis);
  if (axis < 0 || context.rank(kScale) != 1) return context.Unknown();
  for (const size_t i : {kScale, kZeroPoint}) {
    if (context.rank(i) == 1) context.Parallel(i, 0, 1, axis);
  }
}

// Dims of one place become more, which are alike; such a dim of the result has no map.
void ExpandMap(MapContext& context) { context.Broadcast(0); }

void TileMap(MapContext& context) {
  context.Parallel(0, 0, context.rank(0), 0);
  context.Says("repeats");
}

}  // namespace reprise::ops
