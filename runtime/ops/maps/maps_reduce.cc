// Maps of reductions and normalisations.
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/reduce_op.h"

namespace reprise::ops {
namespace {

// Dims of operand 0 but `reduced` ones, which the result lacks, or has with one place.
void Without(MapContext& context, const std::vector<bool>& reduced) {
  const bool keeps = context.out_rank() == context.rank(0);
  int64_t to = 0;
  for (int64_t d = 0; d < context.rank(0); ++d) {
    if (!reduced[d]) context.Parallel(0, d, d + 1, to);
    to += keeps || !reduced[d] ? 1 : 0;
  }
}

// Dims of operand `i` before `axis` stay; places of the others meet.
void NormFrom(MapContext& context, size_t i, int64_t axis) {
  context.Says("takes statistics over");
  context.Broadcast(i);
  const int64_t added = context.out_rank() - context.rank(i);
  for (int64_t d = 0; d < context.rank(i); ++d) {
    if (d + added >= axis) context.Set(i, d, Link::kMixed, d + added);
  }
}

}  // namespace

void ReduceMap(MapContext& context) {
  context.Says("reduces");
  std::vector<bool> reduced(context.rank(0), false);
  const bool named = context.has_input(ReduceSumOp::kAxes);
  const auto axes = context.integers(ReduceSumOp::kAxes);
  if (named && !axes.has_value()) return context.Unknown();
  if (!named || axes->empty()) {
    const bool none = context.attributes().Int("noop_with_empty_axes", 0) != 0;
    absl::c_fill(reduced, !none);
  } else {
    for (const int64_t axis : *axes) reduced[axis < 0 ? axis + context.rank(0) : axis] = true;
  }
  Without(context, reduced);
}

void ArgMap(MapContext& context) {
  context.Says("looks for an extreme over");
  const int64_t axis = context.Axis(0);
  if (axis < 0) return context.Unknown();
  std::vector<bool> reduced(context.rank(0), false);
  reduced[axis] = true;
  Without(context, reduced);
}

void TopKMap(MapContext& context) {
  SoftmaxMap(context);
  context.Says("picks extremes over");
}

void CumulativeMap(MapContext& context) {
  context.Says("adds up over");
  const auto axis = context.integers(1);
  if (!axis.has_value() || axis->size() != 1) return context.Unknown();
  const int64_t dim = (*axis)[0] < 0 ? (*axis)[0] + context.rank(0) : (*axis)[0];
  context.Parallel(0, 0, context.rank(0), 0);
  context.Set(0, dim, Link::kScan, dim);
}

void SoftmaxMap(MapContext& context) {
  context.Says("normalises over");
  const int64_t axis = context.Axis(FactsOf(context.node().op).axis);
  if (axis < 0) return context.Unknown();
  context.Parallel(0, 0, context.rank(0), 0);
  context.Set(0, axis, Link::kMixed, axis);
}

// Other operands of the rank of the first are added to it, the others scale and shift.
void LastDimsNormMap(MapContext& context) {
  const int64_t axis = context.Axis(LayerNormalizationOp::From(context.attributes()).axis);
  if (axis < 0) return context.Unknown();
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (context.has_input(i)) NormFrom(context, i, axis);
  }
}

// Statistics of a sample's channel, or of a group of channels, over all later dims.
void ChannelNormMap(MapContext& context) {
  const bool groups = context.node().op == "GroupNormalization";
  NormFrom(context, 0, groups ? 1 : 2);
  for (const size_t weights : {1, 2}) {
    context.Set(weights, 0, groups ? Link::kMixed : Link::kParallel, 1);
  }
}

void BatchNormMap(MapContext& context) {
  context.Says("takes statistics over");
  context.Parallel(0, 0, context.rank(0), 0);
  if (context.attributes().Int("training_mode", 0) != 0) {
    for (int64_t d = 0; d < context.rank(0); ++d) {
      if (d != 1) context.Set(0, d, Link::kMixed, d);
    }
  }
  for (size_t i = 1; i < context.num_inputs() && context.rank(0) > 1; ++i) {
    context.Parallel(i, 0, 1);
  }
}

void LocalNormMap(MapContext& context) {
  context.Says("adds up squares over");
  context.Parallel(0, 0, context.rank(0), 0);
  context.Set(0, 1, Link::kWindow, 1);
}

}  // namespace reprise::ops
