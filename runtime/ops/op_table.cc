// The op table: every op that a graph may hold, one row each. See op.h for the columns.
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_microsoft.h"
#include "runtime/ops/attention_onnx.h"
#include "runtime/ops/binary.h"
#include "runtime/ops/branch.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/data_sized.h"
#include "runtime/ops/einsum.h"
#include "runtime/ops/gather.h"
#include "runtime/ops/group_norm.h"
#include "runtime/ops/infer.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/non_max_suppression.h"
#include "runtime/ops/norm.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/quantize_microsoft.h"
#include "runtime/ops/rearrange.h"
#include "runtime/ops/recurrent.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/resize.h"
#include "runtime/ops/rotary.h"
#include "runtime/ops/segment.h"
#include "runtime/ops/select.h"
#include "runtime/ops/shape_ops.h"
#include "runtime/ops/slice_pad.h"
#include "runtime/ops/unary.h"

namespace reprise {
namespace ops {
namespace {

// name, inputs min and max, outputs min and max (-1: any number), traits, value inputs, shape rule,
// reference kernel.
// clang-format off
constexpr OpRow kRows[] = {
    // Elementwise, one operand.
    {"Abs", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, AbsKernel},
    {"Neg", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, NegKernel},
    {"Sign", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, SignKernel},
    {"Relu", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, ReluKernel},
    {"Ceil", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CeilKernel},
    {"Floor", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, FloorKernel},
    {"Round", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, RoundKernel},
    {"Sqrt", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SqrtKernel},
    {"Reciprocal", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ReciprocalKernel},
    {"Exp", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ExpKernel},
    {"Log", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, LogKernel},
    {"Sin", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SinKernel},
    {"Cos", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CosKernel},
    {"Tan", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, TanKernel},
    {"Asin", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AsinKernel},
    {"Acos", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AcosKernel},
    {"Atan", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AtanKernel},
    {"Sinh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SinhKernel},
    {"Cosh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CoshKernel},
    {"Tanh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, TanhKernel},
    {"Asinh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AsinhKernel},
    {"Acosh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AcoshKernel},
    {"Atanh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AtanhKernel},
    {"Erf", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ErfKernel},
    {"Sigmoid", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SigmoidKernel},
    {"Gelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, GeluKernel},
    {"Softplus", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SoftplusKernel},
    {"Softsign", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SoftsignKernel},
    {"Mish", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, MishKernel},
    {"Elu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, EluKernel},
    {"Celu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CeluKernel},
    {"Selu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SeluKernel},
    {"LeakyRelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, LeakyReluKernel},
    {"HardSigmoid", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, HardSigmoidKernel},
    {"HardSwish", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, HardSwishKernel},
    {"ThresholdedRelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ThresholdedReluKernel},
    {"Shrink", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, ShrinkKernel},
    {"com.microsoft.QuickGelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, QuickGeluKernel},
    {"Not", 1, 1, 1, 1, kElementwise, 0, CompareRule<kBools>, NotKernel},
    {"IsNaN", 1, 1, 1, 1, kElementwise, 0, CompareRule<kFloats>, IsNaNKernel},
    {"IsInf", 1, 1, 1, 1, kElementwise, 0, CompareRule<kFloats>, IsInfKernel},
    // Elementwise, two and more operands.
    {"Add", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kNumbers>, AddKernel},
    {"Mul", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kNumbers>, MulKernel},
    {"Sub", 2, 2, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, SubKernel},
    {"Div", 2, 2, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, DivKernel},
    {"Mod", 2, 2, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, ModKernel},
    {"Pow", 2, 2, 1, 1, kElementwise, 0, PowRule, PowKernel},
    {"PRelu", 2, 2, 1, 1, kElementwise, 0, PReluRule, PReluKernel},
    {"Equal", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kAnyType>, EqualKernel},
    {"Less", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, LessKernel},
    {"LessOrEqual", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, LessOrEqualKernel},
    {"Greater", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, GreaterKernel},
    {"GreaterOrEqual", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, GreaterOrEqualKernel},
    {"And", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kBools>, AndKernel},
    {"Or", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kBools>, OrKernel},
    {"Xor", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kBools>, XorKernel},
    {"Max", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, MaxKernel},
    {"Min", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, MinKernel},
    {"Sum", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, SumKernel},
    {"Mean", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, MeanKernel},
    {"com.microsoft.BiasGelu", 2, 2, 1, 1, kElementwise, 0, BiasGeluRule, BiasGeluKernel},
    {"com.microsoft.FastGelu", 1, 2, 1, 1, kElementwise, 0, BiasGeluRule, FastGeluKernel},
    // Elementwise, choosing and converting.
    {"Where", 3, 3, 1, 1, kElementwise, 0, WhereRule, WhereKernel},
    {"Clip", 1, 3, 1, 1, kElementwise, 0, ClipRule, ClipKernel},
    {"Cast", 1, 1, 1, 1, kElementwise, 0, CastRule, CastKernel},
    {"CastLike", 2, 2, 1, 1, 0, 0, CastLikeRule, CastKernel},
    // No view: it is how a graph says that bytes must be copied.
    {"Identity", 1, 1, 1, 1, kElementwise, 0, SameRule<kAnyType>, CopyKernel},
    {"Dropout", 1, 3, 1, 2, kElementwise, 6, DropoutRule, DropoutKernel},
    // Shapes.
    {"Shape", 1, 1, 1, 1, kShapeOnly, 0, ShapeRule, ShapeKernel},
    {"Size", 1, 1, 1, 1, kShapeOnly, 0, SizeRule, SizeKernel},
    {"Reshape", 2, 2, 1, 1, kView, 0b10, ReshapeRule, CopyKernel},
    {"Squeeze", 1, 2, 1, 1, kView, 0b10, SqueezeRule, CopyKernel},
    {"Unsqueeze", 2, 2, 1, 1, kView, 0b10, UnsqueezeRule, CopyKernel},
    {"Flatten", 1, 1, 1, 1, kView, 0, FlattenRule, CopyKernel},
    {"ConstantOfShape", 1, 1, 1, 1, 0, 0b1, ConstantOfShapeRule, ConstantOfShapeKernel},
    {"Range", 3, 3, 1, 1, 0, 0b111, RangeRule, RangeKernel},
    {"EyeLike", 1, 1, 1, 1, kShapeOnly, 0, EyeLikeRule, EyeLikeKernel},
    // As many elements as the data says.
    {"NonZero", 1, 1, 1, 1, kDataDependent, 0b1, NonZeroRule, NonZeroKernel},
    {"Compress", 2, 2, 1, 1, kDataDependent, 0b10, CompressRule, CompressKernel},
    {"Unique", 1, 1, 1, 4, kDataDependent, 0b1, UniqueRule, UniqueKernel},
    {"NonMaxSuppression", 2, 5, 1, 1, kDataDependent, 0b11111, NonMaxSuppressionRule, NonMaxSuppressionKernel},
    {"If", 1, -1, 1, -1, 0, 0b1, IfRule, IfKernel},
    // Moving elements.
    {"Transpose", 1, 1, 1, 1, 0, 0, TransposeRule, TransposeKernel},
    {"Concat", 1, -1, 1, 1, 0, 0, ConcatRule, ConcatKernel},
    {"Split", 1, 2, 1, -1, 0, 0b10, SplitRule, SplitKernel},
    {"Slice", 3, 5, 1, 1, 0, 0b11110, SliceRule, SliceKernel},
    {"Expand", 2, 2, 1, 1, 0, 0b10, ExpandRule, ExpandKernel},
    {"Tile", 2, 2, 1, 1, 0, 0b10, TileRule, TileKernel},
    {"Pad", 2, 4, 1, 1, 0, 0b1010, PadRule, PadKernel},
    {"Trilu", 1, 2, 1, 1, 0, 0, TriluRule, TriluKernel},
    {"DepthToSpace", 1, 1, 1, 1, 0, 0, DepthToSpaceRule, DepthToSpaceKernel},
    {"SpaceToDepth", 1, 1, 1, 1, 0, 0, SpaceToDepthRule, SpaceToDepthKernel},
    {"ReverseSequence", 2, 2, 1, 1, 0, 0, ReverseSequenceRule, ReverseSequenceKernel},
    {"Resize", 1, 4, 1, 1, 0, 0b1100, ResizeRule, ResizeKernel},
    // Gathering and scattering.
    {"Gather", 2, 2, 1, 1, 0, 0, GatherRule, GatherKernel},
    {"GatherElements", 2, 2, 1, 1, 0, 0, GatherElementsRule, GatherElementsKernel},
    {"GatherND", 2, 2, 1, 1, 0, 0, GatherNDRule, GatherNDKernel},
    {"ScatterElements", 3, 3, 1, 1, 0, 0, ScatterElementsRule, ScatterElementsKernel},
    {"ScatterND", 3, 3, 1, 1, 0, 0, ScatterNDRule, ScatterNDKernel},
    {"OneHot", 3, 3, 1, 1, 0, 0b10, OneHotRule, OneHotKernel},
    {"reprise.EmbeddingSum", 2, -1, 1, 1, kInternal, 0, EmbeddingSumRule, EmbeddingSumKernel},
    // Reductions.
    {"ReduceSum", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumKernel},
    {"ReduceMean", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceMeanKernel},
    {"ReduceProd", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceProdKernel},
    {"ReduceL1", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL1Kernel},
    {"ReduceL2", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL2Kernel},
    {"ReduceSumSquare", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumSquareKernel},
    {"ReduceLogSum", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumKernel},
    {"ReduceLogSumExp", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumExpKernel},
    {"ReduceMax", 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMaxKernel},
    {"ReduceMin", 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMinKernel},
    {"ArgMax", 1, 1, 1, 1, 0, 0, ArgRule, ArgMaxKernel},
    {"ArgMin", 1, 1, 1, 1, 0, 0, ArgRule, ArgMinKernel},
    {"TopK", 2, 2, 2, 2, 0, 0b10, TopKRule, TopKKernel},
    {"CumSum", 2, 2, 1, 1, 0, 0, CumSumRule, CumSumKernel},
    {"CumProd", 2, 2, 1, 1, 0, 0, CumSumRule, CumProdKernel},
    // Matrix products.
    {"MatMul", 2, 2, 1, 1, 0, 0, MatMulRule, MatMulKernel},
    {"Gemm", 2, 3, 1, 1, 0, 0, GemmRule, GemmKernel},
    {"MatMulInteger", 2, 4, 1, 1, 0, 0, MatMulIntegerRule, MatMulIntegerKernel},
    {"Einsum", 1, -1, 1, 1, 0, 0, EinsumRule, EinsumKernel},
    {"com.microsoft.FusedMatMul", 2, 2, 1, 1, 0, 0, FusedMatMulRule, FusedMatMulKernel},
    {"reprise.Linear", 2, 4, 1, 1, kInternal, 0, LinearRule, LinearKernel},
    // Convolution and pooling.
    {"Conv", 2, 3, 1, 1, 0, 0, ConvRule, ConvKernel},
    {"AveragePool", 1, 1, 1, 1, 0, 0, AveragePoolRule, AveragePoolKernel},
    {"MaxPool", 1, 1, 1, 2, 0, 0, MaxPoolRule, MaxPoolKernel},
    {"GlobalAveragePool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalAveragePoolKernel},
    {"GlobalMaxPool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalMaxPoolKernel},
    // Recurrent layers.
    {"LSTM", 3, 8, 1, 3, 0, 0, LstmRule, LstmKernel},
    {"GRU", 3, 6, 1, 2, 0, 0, GruRule, GruKernel},
    {"RNN", 3, 6, 1, 2, 0, 0, RnnRule, RnnKernel},
    // Normalisations.
    {"Softmax", 1, 1, 1, 1, 0, 0, SoftmaxRule, SoftmaxKernel},
    {"LogSoftmax", 1, 1, 1, 1, 0, 0, SoftmaxRule, LogSoftmaxKernel},
    {"Hardmax", 1, 1, 1, 1, 0, 0, SoftmaxRule, HardmaxKernel},
    {"LayerNormalization", 2, 3, 1, 3, 0, 0, LayerNormalizationRule, LayerNormalizationKernel},
    {"RMSNormalization", 2, 2, 1, 1, 0, 0, RmsNormalizationRule, RmsNormalizationKernel},
    {"BatchNormalization", 5, 5, 1, 1, 0, 0, BatchNormalizationRule, BatchNormalizationKernel},
    {"InstanceNormalization", 3, 3, 1, 1, 0, 0, InstanceNormalizationRule, InstanceNormalizationKernel},
    {"GroupNormalization", 3, 3, 1, 1, 0, 0, GroupNormalizationRule, GroupNormalizationKernel},
    {"reprise.AddLayerNorm", 3, 4, 1, 2, kInternal, 0, AddLayerNormRule, AddLayerNormKernel},
    {"com.microsoft.SkipLayerNormalization", 3, 5, 1, 4, 0, 0, SkipLayerNormRule, SkipLayerNormKernel},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, 1, 4, 0, 0, SkipSimplifiedLayerNormRule, SkipSimplifiedLayerNormKernel},
    // Attention.
    {"Attention", 3, 7, 1, 4, 0, 0, OnnxAttentionRule, OnnxAttentionKernel},
    {"RotaryEmbedding", 3, 4, 1, 1, 0, 0, RotaryEmbeddingRule, RotaryEmbeddingKernel},
    {"com.microsoft.Attention", 2, 7, 1, 1, 0, 0, MicrosoftAttentionRule, MicrosoftAttentionKernel},
    {"com.microsoft.MultiHeadAttention", 1, 10, 1, 1, 0, 0, MultiHeadAttentionRule, MultiHeadAttentionKernel},
    {"com.microsoft.QAttention", 5, 9, 1, 1, 0, 0, QAttentionRule, QAttentionKernel},
    {"com.microsoft.RotaryEmbedding", 4, 4, 1, 1, 0, 0, MicrosoftRotaryEmbeddingRule, MicrosoftRotaryEmbeddingKernel},
    {"com.microsoft.EmbedLayerNormalization", 1, 9, 1, 3, 0, 0, EmbedLayerNormRule, EmbedLayerNormKernel},
    {"reprise.Attention", 1, 4, 1, 1, kInternal, 0, AttentionRule, AttentionKernel},
    // Packed tokens.
    {"reprise.SegmentAttention", 1, 6, 1, 1, kInternal, 0, SegmentAttentionRule, SegmentAttentionKernel},
    {"reprise.SegmentReduce", 2, 2, 1, 1, kInternal, 0, SegmentReduceRule, SegmentReduceKernel},
    {"reprise.SegmentSpread", 3, 3, 1, 1, kInternal, 0, SegmentSpreadRule, SegmentSpreadKernel},
    {"reprise.SegmentCumSum", 2, 2, 1, 1, kInternal, 0, SegmentCumSumRule, SegmentCumSumKernel},
    // Quantisation.
    {"DequantizeLinear", 2, 3, 1, 1, 0, 0, DequantizeLinearRule, DequantizeLinearKernel},
    {"QuantizeLinear", 2, 3, 1, 1, 0, 0, QuantizeLinearRule, QuantizeLinearKernel},
    {"DynamicQuantizeLinear", 1, 1, 1, 3, 0, 0, DynamicQuantizeLinearRule, DynamicQuantizeLinearKernel},
    {"QLinearMatMul", 8, 8, 1, 1, 0, 0, QLinearMatMulRule, QLinearMatMulKernel},
    {"com.microsoft.DynamicQuantizeMatMul", 3, 5, 1, 1, 0, 0, DynamicQuantizeMatMulRule, DynamicQuantizeMatMulKernel},
    {"com.microsoft.MatMulIntegerToFloat", 4, 7, 1, 1, 0, 0, MatMulIntegerToFloatRule, MatMulIntegerToFloatKernel},
    {"com.microsoft.MatMulNBits", 3, 6, 1, 1, 0, 0, MatMulNBitsRule, MatMulNBitsKernel},
};
// clang-format on

}  // namespace
}  // namespace ops

absl::Span<const OpRow> AllOps() { return ops::kRows; }

}  // namespace reprise
