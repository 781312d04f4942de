// The axis rules of the op table's rows. A rule's name says what its ops do to positions.
#pragma once

#include "runtime/ops/axis/axis_rule.h"

namespace reprise::ops {

using AxisOf = void(AxisContext&);

// Returns whether the rule keeps the parts of positions (Positions::parts) where they are kept.
// After any other a walk doubts the result of joined ones.
bool KnowsParts(AxisRule rule);

// axis_elementwise.cc
AxisOf ElementwiseAxis;  // position i depends on position i of all operands
AxisOf KnownAxis;        // depends on shapes alone: a constant wherever shapes are
AxisOf UnknownAxis;      // nothing is known: the axis is not padded

// axis_products.cc
AxisOf MatMulAxis, GemmAxis, MatMulIntegerAxis, QLinearMatMulAxis, LastDimProductAxis, EinsumAxis;

// axis_movement.cc
AxisOf TransposeAxis, ExpandAxis, TileAxis, SplitAxis, SliceAxis, GatherAxis, TriluAxis, DataAxis,
    GatherElementsAxis, OneHotAxis;

// axis_rearrange.cc
AxisOf PadAxis, PlanesAxis, ReverseSequenceAxis, EmbedLayerNormAxis, RotaryAxis;

// axis_joins.cc
AxisOf ViewAxis, ConcatAxis;

// axis_reduce.cc
AxisOf ReduceSumAxis, ReduceNormAxis, ReduceProdAxis, ReduceMeanAxis, ReduceMaxAxis, ReduceMinAxis,
    ReduceLogSumExpAxis, ArgMaxAxis, ArgMinAxis, TopKAxis, CumulativeAxis, SoftmaxAxis;

// axis_layers.cc
AxisOf LastDimsNormAxis, InstanceNormAxis, GroupNormAxis, BatchNormAxis, LocalNormAxis,
    RecurrentAxis, ConvAxis, ConvTransposeAxis, AveragePoolAxis, MaxPoolAxis, LpPoolAxis,
    GlobalPoolAxis, ResizeAxis, DynamicQuantizeAxis, SegmentDynamicQuantizeAxis, AttentionAxis,
    RowsAxis, CategoriesAxis;

// axis_live.cc
AxisOf LiveExtentAxis, LiveFillAxis, LiveMaskAxis, LiveShareAxis, LiveCompactAxis;

// axis_sampling.cc
AxisOf GridSampleAxis, RoiAlignAxis;

// Nothing is known of the padding of `numbers` but that a mask may act on it; or that it does not
// depend on data.
inline bool MayBeMasked(const Positions& positions) {
  return positions.guarded && positions.padding.kind == PaddingValue::Kind::kUnknown;
}
inline bool MayBeZeros(const Positions& positions) {
  return (positions.guarded || positions.settled) &&
         positions.padding.kind == PaddingValue::Kind::kUnknown;
}

// Zero times infinity is no number: whether it comes to that is not known.
inline constexpr char kTakesOut[] = "takes out with zeros what may overflow in the padding of";

// Words of ReduceMean, which others say for it.
inline constexpr char kAverages[] = "averages over";

// A number above this is too near to the numbers of models to be meant as a mask.
inline constexpr double kWeakestMask = -1000;
// A number that replaces another one hides it if no number of a model is this low.
inline constexpr double kOutOfReach = -1e8;
// A number at or below this can only be a mask, and nothing that is added brings it back: float32
// scores that differ by this much are out of any model's reach.
inline constexpr double kStrong = -1e30;

// Returns whether no element of operand 0 lies beyond the value of its padding, the lowest or the
// highest of its numbers. Where clients' numbers are in it that takes the end of the type: seconds
// since 1970 are more than 1e9.
bool IsOutOfReach(const AxisContext& context, const PaddingValue& padding);
// Where it is not: `what` the node does, "takes the largest".
void BlameReach(AxisContext& context, absl::string_view what, const PaddingValue& padding);

}  // namespace reprise::ops
