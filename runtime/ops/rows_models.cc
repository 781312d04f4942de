// Rows of the op table: attention, packed tokens, classic models and quantisation.
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_microsoft.h"
#include "runtime/ops/attention/attention_onnx.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/ops/attention/relative_attention.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/classical/categories.h"
#include "runtime/ops/classical/class_scores.h"
#include "runtime/ops/classical/distances.h"
#include "runtime/ops/classical/forest.h"
#include "runtime/ops/classical/svm_scores.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/movement/append_rows.h"
#include "runtime/ops/op_rows.h"
#include "runtime/ops/quantized/float8.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/segment_quantize.h"
#include "runtime/ops/reduce/rotary.h"
#include "runtime/ops/result_types.h"
#include "runtime/ops/weights/block_weights.h"

namespace reprise::ops {
namespace {

constexpr TypeRule kUInt8 = TypeIs<DType::kUInt8>, kInt32 = TypeIs<DType::kInt32>,
                   kInt64 = TypeIs<DType::kInt64>, kFloat32 = TypeIs<DType::kFloat32>,
                   kFloat64 = TypeIs<DType::kFloat64>;

// clang-format off
constexpr OpEntry kRows[] = {
    // Attention.
    {{"Attention", 3, 7, 1, 4, 0, 0, OnnxAttentionRule, OnnxAttentionKernel, AttentionAxis, TypeOfEach<TypeLike<0>, TypeLike<1>, TypeLike<2>, TypeLike<0>>},
     {.marks = kHeavy, .becomes = "reprise.Attention"}},
    {{"RotaryEmbedding", 3, 4, 1, 1, 0, 0, RotaryEmbeddingRule, RotaryEmbeddingKernel, UnknownAxis},
     {.becomes = "reprise.Rotary"}},
    {{"com.microsoft.Attention", 2, 7, 1, 1, 0, 0, MicrosoftAttentionRule, MicrosoftAttentionKernel, AttentionAxis},
     {.becomes = "reprise.Attention"}},
    {{"com.microsoft.MultiHeadAttention", 1, 10, 1, 3, 0, 0, MultiHeadAttentionRule, MultiHeadAttentionKernel, AttentionAxis},
     {.becomes = "reprise.Attention"}},
    {{"com.microsoft.QAttention", 5, 9, 1, 1, 0, 0, QAttentionRule, QAttentionKernel, AttentionAxis, TypeLike<3>},
     {.becomes = "reprise.Attention"}},
    {{"com.microsoft.RotaryEmbedding", 4, 4, 1, 1, 0, 0, MicrosoftRotaryEmbeddingRule, MicrosoftRotaryEmbeddingKernel, UnknownAxis},
     {.becomes = "reprise.Rotary"}},
    {{"com.microsoft.EmbedLayerNormalization", 1, 9, 1, 3, 0, 0, EmbedLayerNormRule, EmbedLayerNormKernel, UnknownAxis, TypeOfEach<TypeLike<2>, kInt32, TypeLike<2>>},
     {.marks = kLooksUp, .becomes = "reprise.EmbeddingSum"}},
    {{"reprise.AppendRows", 4, 4, 1, 1, kInternal, 0b1000, AppendRowsRule, AppendRowsKernel, UnknownAxis},
     {.rows = RowRule::kAppendRows}},
    {{"reprise.Rotary", 3, 3, 1, 1, kInternal, 0, RotaryRule, RotaryKernel, UnknownAxis},
     {.rows = RowRule::kFirstAndAllFollow, .packing = PackRule::kRotary, .positions = PositionRule::kRotary}},
    {{"reprise.Attention", 1, 4, 1, 1, kInternal, 0, AttentionRule, AttentionKernel, UnknownAxis},
     {.rows = RowRule::kAttention, .packing = PackRule::kAttention, .rounding = Rounding::kAttention}},
    {{"reprise.RelativeAttention", 3, 11, 1, 1, kInternal, 0, RelativeAttentionRule, RelativeAttentionKernel, UnknownAxis},
     {.rows = RowRule::kRelativeAttention, .packing = PackRule::kRelative}},
    // Caches of decoders in pages.
    {{"reprise.CachedRows", 1, 1, 1, 1, kInternal | kNoFold, 0, CachedRowsRule, CachedRowsKernel, UnknownAxis, kFloat32}},
    {{"reprise.PagedAttention", 5, 5, 1, 1, kInternal | kNoFold, 0, PagedAttentionRule, PagedAttentionKernel, UnknownAxis},
     {.rows = RowRule::kSegmentAttention}},
    {{"reprise.PagedCrossAttention", 3, 3, 1, 1, kInternal | kNoFold, 0, PagedCrossAttentionRule, PagedAttentionKernel, UnknownAxis},
     {.rows = RowRule::kSegmentAttention}},
    // Packed tokens.
    {{"reprise.SegmentAttention", 1, 7, 1, 1, kInternal, 0, SegmentAttentionRule, SegmentAttentionKernel, UnknownAxis},
     {.rows = RowRule::kSegmentAttention, .rounding = Rounding::kAttention, .marks = kOfSegments}},
    {{"reprise.SegmentReduce", 2, 2, 1, 1, kInternal, 0, SegmentReduceRule, SegmentReduceKernel, UnknownAxis},
     {.marks = kOfSegments}},
    {{"reprise.SegmentSpread", 3, 3, 1, 1, kInternal, 0, SegmentSpreadRule, SegmentSpreadKernel, UnknownAxis},
     {.rows = RowRule::kThird, .marks = kOfSegments}},
    {{"reprise.SegmentPlace", 2, 2, 1, 1, kInternal, 0, SegmentPlaceRule, SegmentPlaceKernel, UnknownAxis, kInt64},
     {.marks = kOfSegments}},
    {{"reprise.SegmentPick", 3, 3, 1, 1, kInternal, 0, SegmentPickRule, SegmentPickKernel, UnknownAxis},
     {.marks = kOfSegments}},
    {{"reprise.SegmentCumSum", 2, 2, 1, 1, kInternal, 0, SegmentCumSumRule, SegmentCumSumKernel, UnknownAxis},
     {.rows = RowRule::kFirst, .marks = kOfSegments}},
    {{"reprise.SegmentDynamicQuantizeLinear", 1, 2, 1, 3, kInternal, 0, SegmentDynamicQuantizeRule, SegmentDynamicQuantizeKernel, SegmentDynamicQuantizeAxis, TypeOfEach<kUInt8, kFloat32, kUInt8>},
     {.rows = RowRule::kFirst, .packing = PackRule::kRequestScale, .marks = kOfSegments}},
    // Classic models.
    {{"reprise.TreeEnsemble", 2, 2, 1, 1, kInternal, 0, TreeEnsembleRule, TreeEnsembleKernel, RowsAxis, kFloat64},
     {.rows = RowRule::kFirstAlone}},
    {{"reprise.ClassScores", 1, 1, 1, 2, kInternal, 0, ClassScoresRule, ClassScoresKernel, RowsAxis, TypeOfEach<ClassScoresTypes, kInt64>},
     {.rows = RowRule::kFirstAlone}},
    {{"reprise.SvmScores", 1, 1, 1, 2, kInternal, 0, SvmScoresRule, SvmScoresKernel, RowsAxis, TypeOfEach<TypeLike<0>, kInt64>},
     {.rows = RowRule::kFirstAlone}},
    {{"reprise.Distances", 2, 2, 1, 1, kInternal, 0, DistancesRule, DistancesKernel, RowsAxis},
     {.rows = RowRule::kFirstAlone}},
    {{"reprise.CategoryIndex", 2, 2, 1, 1, kInternal, 0, CategoryIndexRule, CategoryIndexKernel, CategoriesAxis, kInt64},
     {.rows = RowRule::kFirstAlone}},
    // Quantisation.
    {{"DequantizeLinear", 2, 3, 1, 1, 0, 0, DequantizeLinearRule, DequantizeLinearKernel, ElementwiseAxis, TypeLike<1>},
     {.growth = Growth::kKeepsPlaces, .rows = RowRule::kQuantisation, .packing = PackRule::kQuantisation, .positions = PositionRule::kQuantisation, .axis = 1, .marks = kQuantises}},
    {{"QuantizeLinear", 2, 3, 1, 1, 0, 0, QuantizeLinearRule, QuantizeLinearKernel, ElementwiseAxis, QuantizeLinearTypes},
     {.rows = RowRule::kQuantisation, .packing = PackRule::kQuantisation, .positions = PositionRule::kQuantisation, .axis = 1, .marks = kQuantises}},
    {{"reprise.FakeQuantize", 2, 3, 1, 1, kInternal, 0, FakeQuantizeRule, FakeQuantizeKernel, UnknownAxis},
     {.rows = RowRule::kQuantisation, .packing = PackRule::kQuantisation, .positions = PositionRule::kQuantisation, .axis = 1, .marks = kQuantises}},
    {{"DynamicQuantizeLinear", 1, 1, 1, 3, 0, 0, DynamicQuantizeLinearRule, DynamicQuantizeLinearKernel, DynamicQuantizeAxis, TypeOfEach<kUInt8, kFloat32, kUInt8>}},
    {{"QLinearMatMul", 8, 8, 1, 1, 0, 0, QLinearMatMulRule, QLinearMatMulKernel, QLinearMatMulAxis, TypeLike<7>},
     {.marks = kMultipliesWeights | kHeavy, .becomes = "reprise.IntegerLinear"}},
    {{"reprise.FromFloat8", 1, 1, 1, 1, kInternal | kElementwise, 0, FromFloat8Rule, FromFloat8Kernel, ElementwiseAxis, kFloat32}},
    {{"reprise.ToFloat8", 1, 1, 1, 1, kInternal | kElementwise, 0, ToFloat8Rule, ToFloat8Kernel, ElementwiseAxis, kUInt8}},
    {{"reprise.DequantizeFloat8", 2, 2, 1, 1, kInternal, 0, DequantizeFloat8Rule, DequantizeFloat8Kernel, ElementwiseAxis, kFloat32}},
    {{"reprise.QuantizeFloat8", 2, 2, 1, 1, kInternal, 0, QuantizeFloat8Rule, QuantizeFloat8Kernel, ElementwiseAxis, kUInt8}},
    {{"reprise.UnpackNibbles", 1, 1, 1, 1, kInternal, 0, UnpackNibblesRule, UnpackNibblesKernel, UnknownAxis}},
    {{"reprise.DequantizeBits", 2, 3, 1, 1, kInternal, 0, DequantizeBitsRule, DequantizeBitsKernel, UnknownAxis, TypeLike<1>}},
};
// clang-format on

}  // namespace

absl::Span<const OpEntry> ModelRows() { return kRows; }

}  // namespace reprise::ops
