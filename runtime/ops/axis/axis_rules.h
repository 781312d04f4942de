// The axis rules of the op table's rows. A rule's name says what its ops do to positions.
#pragma once

#include <limits>

#include "runtime/ops/axis/axis_rule.h"

namespace reprise::ops {

using AxisOf = void(AxisContext&);

// Returns whether the rule keeps the parts of positions (Positions::parts) where they are kept.
// After any other a walk doubts the result of joined ones.
bool KnowsParts(AxisRule rule);

// axis_maps.cc
AxisOf MapAxis;  // as the index map of the op says

// axis_elementwise.cc
AxisOf ElementwiseAxis;  // position i depends on position i of all operands
AxisOf KnownAxis;        // depends on shapes alone: a constant wherever shapes are
AxisOf UnknownAxis;      // nothing is known: the axis is not padded

// axis_products.cc
AxisOf MatMulAxis, GemmAxis, MatMulIntegerAxis, QLinearMatMulAxis, EinsumAxis;

// axis_movement.cc
AxisOf TransposeAxis, ExpandAxis, TileAxis, SplitAxis, SliceAxis, GatherAxis, TriluAxis, DataAxis,
    GatherElementsAxis, OneHotAxis;

// axis_rearrange.cc
AxisOf PadAxis, PlanesAxis, ReverseSequenceAxis, EmbedLayerNormAxis, RotaryAxis, AffineGridAxis,
    MaxUnpoolAxis;

// axis_resize.cc
AxisOf ResizeAxis;

// axis_joins.cc
AxisOf ViewAxis, ConcatAxis;

// axis_reduce.cc
AxisOf ReduceSumAxis, ReduceNormAxis, ReduceProdAxis, ReduceMeanAxis, ReduceMaxAxis, ReduceMinAxis,
    ReduceLogSumExpAxis, ArgMaxAxis, ArgMinAxis, TopKAxis, CumulativeAxis, SoftmaxAxis;

// axis_layers.cc
AxisOf RecurrentAxis, ConvAxis, ConvTransposeAxis, AveragePoolAxis, MaxPoolAxis, LpPoolAxis,
    GlobalPoolAxis, DynamicQuantizeAxis, SegmentDynamicQuantizeAxis, AttentionAxis;

// axis_live.cc
AxisOf LiveExtentAxis, LiveFillAxis, LiveMaskAxis, LiveShareAxis, LiveCompactAxis;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Zero times infinity is no number: whether it comes to that is not known.
inline constexpr char kTakesOut[] = "takes out with zeros what may overflow in the padding of";

}  // namespace reprise::ops
