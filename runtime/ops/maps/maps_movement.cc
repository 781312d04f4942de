// Maps of ops that move, join, cut and look up elements.
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/ops/movement/slice_op.h"

namespace reprise::ops {
namespace {

// Keeps all dims of operand `i` but for `axis`, whose places change.
void AllBut(MapContext& context, size_t i, int64_t axis) {
  for (int64_t d = 0; d < context.rank(i); ++d) {
    if (d == axis) {
      context.Set(i, d, Link::kMixed, d);
    } else {
      context.Parallel(i, d, d + 1, d);
    }
  }
}

}  // namespace

void TransposeMap(MapContext& context) {
  const int64_t rank = context.rank(0);
  const std::vector<int64_t> order = context.attributes().Ints("perm");
  for (int64_t to = 0; to < rank; ++to) {
    context.Parallel(0, order.empty() ? rank - 1 - to : order[to], to);
  }
}

void ConcatMap(MapContext& context) {
  context.Says("joins");
  const int64_t axis = context.Axis(0);
  if (axis < 0) return context.Unknown();
  for (size_t i = 0; i < context.num_inputs(); ++i) AllBut(context, i, axis);
}

void SplitMap(MapContext& context) {
  context.Says("cuts");
  const int64_t axis = context.Axis(0);
  if (axis < 0) return context.Unknown();
  AllBut(context, 0, axis);
}

void SliceMap(MapContext& context) {
  context.Says("cuts");
  std::vector<bool> cut(context.rank(0), !context.has_input(SliceOp::kAxes));
  if (context.has_input(SliceOp::kAxes)) {
    const auto axes = context.integers(SliceOp::kAxes);
    if (!axes.has_value()) return context.Unknown();
    for (const int64_t axis : *axes) cut[axis < 0 ? axis + context.rank(0) : axis] = true;
  }
  for (int64_t d = 0; d < context.rank(0); ++d) {
    if (cut[d]) {
      context.Set(0, d, Link::kMixed, d);
    } else {
      context.Parallel(0, d, d + 1, d);
    }
  }
}

// Dims that nothing is added to stay as they are, for any number of places.
void PadMap(MapContext& context) {
  constexpr size_t kPads = 1, kAxes = 3;
  context.Says("pads");
  const auto pads = context.integers(kPads);
  std::vector<int64_t> axes(context.rank(0));
  absl::c_iota(axes, 0);
  if (context.has_input(kAxes)) {
    const auto named = context.integers(kAxes);
    if (!named.has_value()) return context.Unknown();
    axes = *named;
  }
  if (!pads.has_value() || pads->size() != 2 * axes.size()) return context.Unknown();
  context.Parallel(0, 0, context.rank(0), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = axes[i] < 0 ? axes[i] + context.rank(0) : axes[i];
    const bool added = (*pads)[i] != 0 || (*pads)[i + axes.size()] != 0;
    if (added) context.Set(0, dim, Link::kMixed, dim);
  }
}

// Keeps all dims but the last two, which say which elements stay.
void TriluMap(MapContext& context) {
  context.Says("puts zeros by the place along");
  context.Parallel(0, 0, context.rank(0) - 2, 0);
  context.Mixed(0, context.rank(0) - 2);
}

void PlanesMap(MapContext& context) {
  context.Says("moves elements across");
  context.Parallel(0, 0, 1, 0);
  context.Mixed(0, 1);
}

void ReverseSequenceMap(MapContext& context) {
  context.Says("turns round");
  const int64_t rank = context.rank(0);
  const auto dim = [&](const char* name, int64_t fallback) {
    const int64_t at = context.attributes().Int(name, fallback);
    return at < 0 ? at + rank : at;
  };
  AllBut(context, 0, dim("time_axis", 0));
  context.Parallel(1, 0, dim("batch_axis", 1));
}

void GatherMap(MapContext& context) {
  context.Says("looks up places of");
  const int64_t axis = context.Axis(0), places = context.rank(1);
  if (axis < 0) return context.Unknown();
  context.Parallel(0, 0, axis, 0);
  context.Parallel(0, axis + 1, context.rank(0), axis + places);
  context.Parallel(1, 0, places, axis);
}

// Along other dims than the axis an element comes from its own place.
void GatherElementsMap(MapContext& context) {
  context.Says("looks up places of");
  const int64_t axis = context.Axis(0);
  if (axis < 0) return context.Unknown();
  context.Parallel(1, 0, context.rank(1), 0);
  for (int64_t d = 0; d < context.rank(0); ++d) {
    if (d != axis) context.Parallel(0, d, d + 1, d);
  }
}

void GatherNdMap(MapContext& context) {
  context.Says("looks up places of");
  const int64_t batch = GatherNdOp::From(context.attributes()).batch_dims;
  const int64_t lists = context.rank(1) - 1;
  if (lists < batch) return context.Unknown();
  context.Parallel(0, 0, batch, 0);
  context.Parallel(1, 0, lists, 0);
  const int64_t looked_up = batch + context.shape(1).back();
  context.Parallel(0, looked_up, context.rank(0), lists);
}

// Along other dims than the axis an element goes to its own place.
void ScatterElementsMap(MapContext& context) {
  context.Says("puts elements at places of");
  const int64_t axis = context.Axis(0);
  if (axis < 0) return context.Unknown();
  AllBut(context, ScatterElementsOp::kX, axis);
  for (const size_t i : {ScatterElementsOp::kPlaces, ScatterElementsOp::kUpdates}) {
    context.Parallel(i, 0, axis, 0);
    context.Parallel(i, axis + 1, context.rank(i), axis + 1);
  }
}

// Lists of places name the first dims.
void ScatterNdMap(MapContext& context) {
  context.Says("puts elements at places of");
  const int64_t named = context.shape(ScatterNdOp::kPlaces).back();
  const int64_t lists = context.rank(ScatterNdOp::kPlaces) - 1;
  context.Parallel(ScatterNdOp::kX, 0, context.rank(0), 0);
  for (int64_t d = 0; d < named; ++d) context.Set(ScatterNdOp::kX, d, Link::kMixed, d);
  context.Parallel(ScatterNdOp::kUpdates, lists, context.rank(ScatterNdOp::kUpdates), named);
}

void OneHotMap(MapContext& context) {
  const int64_t rank = context.out_rank();
  const int64_t attribute = context.attributes().Int("axis", -1);
  const int64_t axis = attribute < 0 ? attribute + rank : attribute;
  context.Parallel(0, 0, axis, 0);
  context.Parallel(0, axis, context.rank(0), axis + 1);
}

// Tables and the places that are looked up in them, by turns.
void EmbeddingSumMap(MapContext& context) {
  const int64_t dims = context.out_rank() - 1;
  for (size_t i = 1; i < context.num_inputs(); i += 2) {
    if (!context.has_input(i)) continue;
    for (int64_t d = 0; d < context.rank(i); ++d) {
      const int64_t to = d + dims - context.rank(i);
      if (to >= 0 && context.shape(i)[d] == context.out()[to]) context.Parallel(i, d, to);
    }
  }
}

void AppendRowsMap(MapContext& context) {
  for (size_t i = 0; i < 2; ++i) context.Parallel(i, 0, 2, 0);
  context.Parallel(2, 0, 0);
  for (size_t i = 0; i < 2; ++i) {
    context.Set(i, 2, Link::kMixed, 2);
    context.Set(i, 3, Link::kParallel, 3);
  }
}

}  // namespace reprise::ops
