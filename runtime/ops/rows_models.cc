// Rows of the op table: attention, packed tokens, classic models and quantisation.
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_microsoft.h"
#include "runtime/ops/attention/attention_onnx.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/attention/relative_attention.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/classical/categories.h"
#include "runtime/ops/classical/class_scores.h"
#include "runtime/ops/classical/classical_op.h"
#include "runtime/ops/classical/distances.h"
#include "runtime/ops/classical/forest.h"
#include "runtime/ops/classical/svm_scores.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/append_rows.h"
#include "runtime/ops/movement/append_rows_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/ranks.h"
#include "runtime/ops/movement/ranks_op.h"
#include "runtime/ops/op_rows.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/float8.h"
#include "runtime/ops/quantized/float8_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/quantized/segment_quantize.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/rotary.h"
#include "runtime/ops/reduce/rotary_op.h"
#include "runtime/ops/result_types.h"
#include "runtime/ops/weights/bits_op.h"
#include "runtime/ops/weights/block_weights.h"
#include "runtime/ops/weights/rounded_op.h"
#include "runtime/ops/weights/rounded_weights.h"
#include "runtime/ops/weights/stored_floats.h"
#include "runtime/ops/weights/stored_op.h"

namespace reprise::ops {
namespace {

// clang-format off
constexpr OpEntry kModelRows[] = {
    // Attention.
    {{OnnxAttentionOp::kName, 3, 7, 1, 4, 0, 0, OnnxAttentionRule, OnnxAttentionKernel, AttentionAxis, TypeOfEach<TypeLike<0>, TypeLike<1>, TypeLike<2>, TypeLike<0>>},
     {.border = Border::kAttention, .marks = kHeavy, .becomes = AttentionOp::kName}},
    {{SinkAttentionOp::kName, 3, 8, 1, 4, kInternal, 0, OnnxAttentionRule, OnnxAttentionKernel, AttentionAxis, TypeOfEach<TypeLike<0>, TypeLike<1>, TypeLike<2>, TypeLike<0>>},
     {.border = Border::kAttention, .marks = kHeavy, .becomes = AttentionOp::kName}},
    {{RotaryEmbeddingOp::kName, 3, 4, 1, 1, 0, 0, RotaryEmbeddingRule, RotaryEmbeddingKernel, RotaryAxis},
     {.becomes = RotaryOp::kName}},
    {{MicrosoftAttentionOp::kName, 2, 7, 1, 1, 0, 0, MicrosoftAttentionRule, MicrosoftAttentionKernel, AttentionAxis},
     {.border = Border::kAttention, .becomes = AttentionOp::kName}},
    {{MultiHeadAttentionOp::kName, 1, 10, 1, 3, 0, 0, MultiHeadAttentionRule, MultiHeadAttentionKernel, AttentionAxis},
     {.border = Border::kAttention, .becomes = AttentionOp::kName}},
    {{QAttentionOp::kName, 5, 9, 1, 1, 0, 0, QAttentionRule, QAttentionKernel, AttentionAxis, TypeLike<3>},
     {.becomes = AttentionOp::kName}},
    {{MicrosoftRotaryEmbeddingOp::kName, 4, 4, 1, 1, 0, 0, MicrosoftRotaryEmbeddingRule, MicrosoftRotaryEmbeddingKernel, RotaryAxis},
     {.becomes = RotaryOp::kName}},
    {{EmbedLayerNormOp::kName, 1, 9, 1, 3, 0, 0, EmbedLayerNormRule, EmbedLayerNormKernel, EmbedLayerNormAxis, TypeOfEach<TypeLike<2>, kInt32, TypeLike<2>>},
     {.marks = kLooksUp, .becomes = EmbeddingSumOp::kName}},
    {{AppendRowsOp::kName, 4, 4, 1, 1, kInternal, 0b1000, AppendRowsRule, AppendRowsKernel, UnknownAxis},
     {.map = AppendRowsMap}},
    {{RotaryOp::kName, 3, 3, 1, 1, kInternal, 0, RotaryRule, RotaryKernel, UnknownAxis},
     {.map = RotaryMap, .packing = PackRule::kRotary}},
    {{AttentionOp::kName, 1, 5, 1, 1, kInternal, 0, AttentionRule, AttentionKernel, UnknownAxis},
     {.map = AttentionMap, .packing = PackRule::kAttention, .rounding = Rounding::kAttention}},
    {{RelativeAttentionOp::kName, 3, 11, 1, 1, kInternal, 0, RelativeAttentionRule, RelativeAttentionKernel, UnknownAxis},
     {.map = RelativeAttentionMap, .packing = PackRule::kRelative}},
    // Caches of decoders in pages.
    {{CachedRowsOp::kName, 1, 1, 1, 1, kInternal | kNoFold, 0, CachedRowsRule, CachedRowsKernel, UnknownAxis, kFloat32}},
    {{PagedAttentionOp::kName, 5, 6, 1, 1, kInternal | kNoFold, 0, PagedAttentionRule, PagedAttentionKernel, UnknownAxis},
     {.map = SegmentAttentionMap, .rounding = Rounding::kAttention}},
    {{PagedCrossAttentionOp::kName, 3, 3, 1, 1, kInternal | kNoFold, 0, PagedCrossAttentionRule, PagedAttentionKernel, UnknownAxis},
     {.map = SegmentAttentionMap}},
    // Ranks of a model.
    {{AllReduceOp::kName, 1, 1, 1, 1, kInternal | kNoFold, 0, AllReduceRule, AllReduceKernel, UnknownAxis},
     {.map = BatchOfFirstMap, .marks = kKnowsRows}},
    {{AllGatherOp::kName, 1, 1, 1, 1, kInternal | kNoFold, 0, AllGatherRule, AllGatherKernel, UnknownAxis},
     {.map = BatchOfFirstMap, .marks = kKnowsRows}},
    {{BroadcastOp::kName, 1, 1, 1, 1, kInternal | kNoFold, 0, BroadcastRule, BroadcastKernel, UnknownAxis, kFloat32},
     {.map = BatchOfFirstMap, .marks = kKnowsRows}},
    // Packed tokens.
    {{SegmentAttentionOp::kName, 1, 7, 1, 1, kInternal, 0, SegmentAttentionRule, SegmentAttentionKernel, UnknownAxis},
     {.map = SegmentAttentionMap, .rounding = Rounding::kAttention, .marks = kOfSegments}},
    {{SegmentReduceOp::kName, 2, 2, 1, 1, kInternal, 0, SegmentReduceRule, SegmentReduceKernel, UnknownAxis},
     {.marks = kOfSegments}},
    {{SegmentSpreadOp::kName, 3, 3, 1, 1, kInternal, 0, SegmentSpreadRule, SegmentSpreadKernel, UnknownAxis},
     {.map = SegmentSpreadMap, .marks = kOfSegments}},
    {{SegmentPlaceOp::kName, 2, 2, 1, 1, kInternal, 0, SegmentPlaceRule, SegmentPlaceKernel, UnknownAxis, kInt64},
     {.marks = kOfSegments}},
    {{SegmentPickOp::kName, 3, 3, 1, 1, kInternal, 0, SegmentPickRule, SegmentPickKernel, UnknownAxis},
     {.marks = kOfSegments}},
    {{SegmentCumSumOp::kName, 2, 2, 1, 1, kInternal, 0, SegmentCumSumRule, SegmentCumSumKernel, UnknownAxis},
     {.map = SegmentMap, .marks = kOfSegments}},
    {{SegmentDynamicQuantizeOp::kName, 1, 2, 1, 3, kInternal, 0, SegmentDynamicQuantizeRule, SegmentDynamicQuantizeKernel, SegmentDynamicQuantizeAxis, TypeOfEach<kUInt8, kFloat32, kUInt8>},
     {.map = SegmentMap, .packing = PackRule::kRequestScale, .marks = kOfSegments}},
    // Classic models.
    {{TreeEnsembleOp::kName, 2, 2, 1, 1, kInternal, 0, TreeEnsembleRule, TreeEnsembleKernel, MapAxis, kFloat64},
     {.map = RowsMap}},
    {{ClassScoresOp::kName, 1, 1, 1, 2, kInternal, 0, ClassScoresRule, ClassScoresKernel, MapAxis, TypeOfEach<ClassScoresTypes, kInt64>},
     {.map = RowsMap}},
    {{SvmScoresOp::kName, 1, 1, 1, 2, kInternal, 0, SvmScoresRule, SvmScoresKernel, MapAxis, TypeOfEach<TypeLike<0>, kInt64>},
     {.map = RowsMap}},
    {{DistancesOp::kName, 2, 2, 1, 1, kInternal, 0, DistancesRule, DistancesKernel, MapAxis},
     {.map = DistancesMap}},
    {{CategoryIndexOp::kName, 2, 2, 1, 1, kInternal, 0, CategoryIndexRule, CategoryIndexKernel, MapAxis, kInt64},
     {.map = FirstMap}},
    // Quantisation.
    {{DequantizeLinearOp::kName, 2, 3, 1, 1, 0, 0, DequantizeLinearRule, DequantizeLinearKernel, ElementwiseAxis, TypeLike<1>},
     {.map = QuantisationMap, .growth = Growth::kKeepsPlaces, .packing = PackRule::kQuantisation, .axis = 1, .marks = kQuantises}},
    {{QuantizeLinearOp::kName, 2, 3, 1, 1, 0, 0, QuantizeLinearRule, QuantizeLinearKernel, ElementwiseAxis, QuantizeLinearTypes},
     {.map = QuantisationMap, .packing = PackRule::kQuantisation, .axis = 1, .marks = kQuantises | kCoarse}},
    {{FakeQuantizeOp::kName, 2, 3, 1, 1, kInternal, 0, FakeQuantizeRule, FakeQuantizeKernel, UnknownAxis},
     {.map = QuantisationMap, .packing = PackRule::kQuantisation, .axis = 1, .marks = kQuantises}},
    {{DynamicQuantizeLinearOp::kName, 1, 1, 1, 3, 0, 0, DynamicQuantizeLinearRule, DynamicQuantizeLinearKernel, DynamicQuantizeAxis, TypeOfEach<kUInt8, kFloat32, kUInt8>},
     {.marks = kCoarse}},
    {{QLinearMatMulOp::kName, 8, 8, 1, 1, 0, 0, QLinearMatMulRule, QLinearMatMulKernel, QLinearMatMulAxis, TypeLike<7>},
     {.map = QLinearMatMulMap, .marks = kMultipliesWeights | kHeavy, .becomes = IntegerLinearOp::kName}},
    {{FromFloat8Op::kName, 1, 1, 1, 1, kInternal | kElementwise, 0, FromFloat8Rule, FromFloat8Kernel, ElementwiseAxis, kFloat32},
     {.overflow = Overflow::kAlways}},
    {{ToFloat8Op::kName, 1, 1, 1, 1, kInternal | kElementwise, 0, ToFloat8Rule, ToFloat8Kernel, ElementwiseAxis, kUInt8}},
    {{DequantizeFloat8Op::kName, 2, 2, 1, 1, kInternal, 0, DequantizeFloat8Rule, DequantizeFloat8Kernel, ElementwiseAxis, kFloat32},
     {.overflow = Overflow::kAlways}},
    {{QuantizeFloat8Op::kName, 2, 2, 1, 1, kInternal, 0, QuantizeFloat8Rule, QuantizeFloat8Kernel, ElementwiseAxis, kUInt8}},
    {{UnpackNibblesOp::kName, 1, 1, 1, 1, kInternal, 0, UnpackNibblesRule, UnpackNibblesKernel, UnknownAxis}},
    {{DequantizeBitsOp::kName, 2, 3, 1, 1, kInternal, 0, DequantizeBitsRule, DequantizeBitsKernel, UnknownAxis, TypeLike<1>}},
    {{StoredFloatsOp::kName, 1, 1, 1, 1, kInternal, 0, StoredFloatsRule, StoredFloatsKernel, MapAxis, kFloat32},
     {.map = LastDimProductMap, .overflow = Overflow::kAlways, .packing = PackRule::kAlongAxis, .axis = -1}},
    {{StoredPartOp::kName, 1, 1, 1, 1, kInternal, 0, StoredPartRule, StoredPartKernel, UnknownAxis}},
    {{RoundedPartOp::kName, 1, 1, 1, 1, kInternal, 0, RoundedPartRule, RoundedPartKernel, UnknownAxis}},
};
// clang-format on

}  // namespace

absl::Span<const OpEntry> ModelRows() { return kModelRows; }

}  // namespace reprise::ops
