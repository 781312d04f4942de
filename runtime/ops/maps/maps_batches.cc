// Maps that tell the rows of a batch apart, or the requests of a packed replay, and no more.
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/maps/map_rules.h"

namespace reprise::ops {
namespace {

constexpr char kAttends[] = "attends over";

// Rows of operand `i`: each for one row of the result, or for a block of them.
void Row(MapContext& context, size_t i) {
  if (context.rank(i) > 0) context.Parallel(i, 0, 0);
}

// Queries, keys and values.
void Segments(MapContext& context) {
  context.Says(kAttends);
  using enum SegmentAttentionOp::Input;
  for (const size_t i : {kQueries, kKeys, kValues}) context.Set(i, 0, Link::kSegment, 0);
}

}  // namespace

// Tells batch rows apart; a mask of four dims may have rows.
void AttentionMap(MapContext& context) {
  context.Says(kAttends);
  using enum AttentionOp::Input;
  for (const size_t i : {kQueries, kKeys, kValues}) Row(context, i);
  if (context.rank(kMask) == 4 && context.shape(kMask)[0] != 1) Row(context, kMask);
}

void RelativeAttentionMap(MapContext& context) {
  const bool packed = context.has_input(RelativeAttentionOp::kSegments);
  packed ? Segments(context) : AttentionMap(context);
}

// Tells requests apart, also for pages, which follow the same operands.
void SegmentAttentionMap(MapContext& context) { Segments(context); }

void SegmentMap(MapContext& context) { context.Set(0, 0, Link::kSegment, 0); }

void SegmentSpreadMap(MapContext& context) {
  context.Set(SegmentSpreadOp::kTokens, 0, Link::kSegment, 0);
}

void BatchOfFirstMap(MapContext& context) { Row(context, 0); }

// Operand 1 holds sizes.
void LiveCompactMap(MapContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (i != 1) Row(context, i);
  }
}

void BatchOfAllMap(MapContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) Row(context, i);
}

// Fills one or several rows of x for a row of the extents.
void LiveFillMap(MapContext& context) {
  context.Says("fills the end of");
  context.Parallel(0, 0, context.rank(0), 0);
  const int64_t axis = context.Axis(-1);
  if (axis < 0) return context.Unknown();
  context.Set(0, axis, Link::kMixed, axis);
  Row(context, 1);
}

}  // namespace reprise::ops
