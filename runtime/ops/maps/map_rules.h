// The map rules of the op table's rows. A rule's name says how its ops move places.
#pragma once

#include "runtime/ops/maps/index_map.h"

namespace reprise::ops {

using MapOf = void(MapContext&);

// maps_elementwise.cc
MapOf ElementwiseMap;  // operands broadcast to the result
MapOf ViewMap;         // the dims before the first one that another shape changes
MapOf FirstMap;        // elements of operand 0, each by itself and by what all share
MapOf QuantisationMap, ExpandMap, TileMap;

// maps_products.cc
MapOf MatMulMap, GemmMap, LinearMap, MatMulIntegerMap, QLinearMatMulMap, IntegerLinearMap,
    EinsumMap, LastDimProductMap, DetMap, StftMap, DistancesMap;

// maps_movement.cc
MapOf TransposeMap, ConcatMap, SplitMap, SliceMap, PadMap, TriluMap, PlanesMap, ReverseSequenceMap,
    GatherMap, GatherElementsMap, GatherNdMap, ScatterElementsMap, ScatterNdMap, OneHotMap,
    EmbeddingSumMap, AppendRowsMap;

// maps_reduce.cc
MapOf ReduceMap, ArgMap, TopKMap, CumulativeMap, SoftmaxMap, LastDimsNormMap, ChannelNormMap,
    BatchNormMap, LocalNormMap;

// maps_layers.cc
MapOf ConvMap, ConvTransposeMap, FusedConvMap, IntegerConvMap, DeformConvMap, PoolMap,
    GlobalPoolMap, RecurrentMap, ResizeMap, GridSampleMap, RoiAlignMap, RotaryMap, RowsMap;

// maps_batches.cc: rows of a batch alone, or requests of a packed replay.
MapOf AttentionMap, RelativeAttentionMap, SegmentAttentionMap, SegmentMap, SegmentSpreadMap,
    BatchOfFirstMap, BatchOfAllMap, LiveFillMap, LiveCompactMap;

}  // namespace reprise::ops
