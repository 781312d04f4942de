// The op table: every op that a graph may hold, one row each. See op.h for the columns.
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
#include "runtime/ops/control/branch.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/random.h"
#include "runtime/ops/elementwise/select.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/append_rows.h"
#include "runtime/ops/movement/data_sized.h"
#include "runtime/ops/movement/gather.h"
#include "runtime/ops/movement/movement.h"
#include "runtime/ops/movement/non_max_suppression.h"
#include "runtime/ops/movement/rearrange.h"
#include "runtime/ops/movement/select_item.h"
#include "runtime/ops/movement/shape_ops.h"
#include "runtime/ops/movement/slice_pad.h"
#include "runtime/ops/products/det.h"
#include "runtime/ops/products/einsum.h"
#include "runtime/ops/products/fourier.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/mel_weights.h"
#include "runtime/ops/products/stft.h"
#include "runtime/ops/quantized/byte_table.h"
#include "runtime/ops/quantized/float8.h"
#include "runtime/ops/quantized/integer_add.h"
#include "runtime/ops/quantized/integer_conv.h"
#include "runtime/ops/quantized/integer_linear.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/segment_quantize.h"
#include "runtime/ops/recurrent/recurrent.h"
#include "runtime/ops/reduce/group_norm.h"
#include "runtime/ops/reduce/local_norm.h"
#include "runtime/ops/reduce/norm.h"
#include "runtime/ops/reduce/reduce.h"
#include "runtime/ops/reduce/rotary.h"
#include "runtime/ops/result_types.h"
#include "runtime/ops/weights/block_weights.h"
#include "runtime/ops/windows/affine_grid.h"
#include "runtime/ops/windows/col2im.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_transpose.h"
#include "runtime/ops/windows/deform_conv.h"
#include "runtime/ops/windows/grid_sample.h"
#include "runtime/ops/windows/max_unpool.h"
#include "runtime/ops/windows/pool.h"
#include "runtime/ops/windows/resize.h"
#include "runtime/ops/windows/roi_align.h"

namespace reprise {
namespace ops {
namespace {

constexpr TypeRule kBool = TypeIs<DType::kBool>, kUInt8 = TypeIs<DType::kUInt8>,
                   kInt32 = TypeIs<DType::kInt32>, kInt64 = TypeIs<DType::kInt64>,
                   kFloat32 = TypeIs<DType::kFloat32>, kFloat64 = TypeIs<DType::kFloat64>;

// name, inputs min and max, outputs min and max (-1: any number), traits, value inputs, shape rule,
// reference kernel, axis rule, rule of dtypes where that is not TypeLikeFirst.
// clang-format off
constexpr OpRow kRows[] = {
    // Elementwise, one operand.
    {"Abs", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, AbsKernel, ElementwiseAxis},
    {"Neg", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, NegKernel, ElementwiseAxis},
    {"Sign", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, SignKernel, ElementwiseAxis},
    {"Relu", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, ReluKernel, ElementwiseAxis},
    {"Ceil", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CeilKernel, ElementwiseAxis},
    {"Floor", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, FloorKernel, ElementwiseAxis},
    {"Round", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, RoundKernel, ElementwiseAxis},
    {"Sqrt", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SqrtKernel, ElementwiseAxis},
    {"Reciprocal", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ReciprocalKernel, ElementwiseAxis},
    {"Exp", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ExpKernel, ElementwiseAxis},
    {"Log", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, LogKernel, ElementwiseAxis},
    {"Sin", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SinKernel, ElementwiseAxis},
    {"Cos", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CosKernel, ElementwiseAxis},
    {"Tan", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, TanKernel, ElementwiseAxis},
    {"Asin", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AsinKernel, ElementwiseAxis},
    {"Acos", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AcosKernel, ElementwiseAxis},
    {"Atan", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AtanKernel, ElementwiseAxis},
    {"Sinh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SinhKernel, ElementwiseAxis},
    {"Cosh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CoshKernel, ElementwiseAxis},
    {"Tanh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, TanhKernel, ElementwiseAxis},
    {"Asinh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AsinhKernel, ElementwiseAxis},
    {"Acosh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AcoshKernel, ElementwiseAxis},
    {"Atanh", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, AtanhKernel, ElementwiseAxis},
    {"Erf", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ErfKernel, ElementwiseAxis},
    {"Sigmoid", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SigmoidKernel, ElementwiseAxis},
    {"Gelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, GeluKernel, ElementwiseAxis},
    {"Softplus", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SoftplusKernel, ElementwiseAxis},
    {"Softsign", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SoftsignKernel, ElementwiseAxis},
    {"Mish", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, MishKernel, ElementwiseAxis},
    {"Elu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, EluKernel, ElementwiseAxis},
    {"Celu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, CeluKernel, ElementwiseAxis},
    {"Selu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, SeluKernel, ElementwiseAxis},
    {"LeakyRelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, LeakyReluKernel, ElementwiseAxis},
    {"HardSigmoid", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, HardSigmoidKernel, ElementwiseAxis},
    {"HardSwish", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, HardSwishKernel, ElementwiseAxis},
    {"ThresholdedRelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, ThresholdedReluKernel, ElementwiseAxis},
    {"Shrink", 1, 1, 1, 1, kElementwise, 0, SameRule<kNumbers>, ShrinkKernel, ElementwiseAxis},
    {"com.microsoft.QuickGelu", 1, 1, 1, 1, kElementwise, 0, SameRule<kFloats>, QuickGeluKernel, ElementwiseAxis},
    {"Not", 1, 1, 1, 1, kElementwise, 0, CompareRule<kBools>, NotKernel, ElementwiseAxis, kBool},
    {"BitwiseNot", 1, 1, 1, 1, kElementwise, 0, SameRule<kInts>, BitwiseNotKernel, ElementwiseAxis},
    {"IsNaN", 1, 1, 1, 1, kElementwise, 0, CompareRule<kFloats>, IsNaNKernel, ElementwiseAxis, kBool},
    {"IsInf", 1, 1, 1, 1, kElementwise, 0, CompareRule<kFloats>, IsInfKernel, ElementwiseAxis, kBool},
    // Elementwise, two and more operands.
    {"Add", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kNumbers>, AddKernel, ElementwiseAxis},
    {"Mul", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kNumbers>, MulKernel, ElementwiseAxis},
    {"Sub", 2, 2, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, SubKernel, ElementwiseAxis},
    {"Div", 2, 2, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, DivKernel, ElementwiseAxis},
    {"Mod", 2, 2, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, ModKernel, ElementwiseAxis},
    {"Pow", 2, 2, 1, 1, kElementwise, 0, PowRule, PowKernel, ElementwiseAxis},
    {"PRelu", 2, 2, 1, 1, kElementwise, 0, PReluRule, PReluKernel, ElementwiseAxis},
    {"Equal", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kAnyType>, EqualKernel, ElementwiseAxis, kBool},
    {"Less", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, LessKernel, ElementwiseAxis, kBool},
    {"LessOrEqual", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, LessOrEqualKernel, ElementwiseAxis, kBool},
    {"Greater", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, GreaterKernel, ElementwiseAxis, kBool},
    {"GreaterOrEqual", 2, 2, 1, 1, kElementwise, 0, CompareRule<kNumbers>, GreaterOrEqualKernel, ElementwiseAxis, kBool},
    {"And", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kBools>, AndKernel, ElementwiseAxis, kBool},
    {"Or", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kBools>, OrKernel, ElementwiseAxis, kBool},
    {"Xor", 2, 2, 1, 1, kElementwise | kCommutative, 0, CompareRule<kBools>, XorKernel, ElementwiseAxis, kBool},
    {"BitwiseAnd", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kInts>, BitwiseAndKernel, ElementwiseAxis},
    {"BitwiseOr", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kInts>, BitwiseOrKernel, ElementwiseAxis},
    {"BitwiseXor", 2, 2, 1, 1, kElementwise | kCommutative, 0, BroadcastRule<kInts>, BitwiseXorKernel, ElementwiseAxis},
    {"BitShift", 2, 2, 1, 1, kElementwise, 0, BitShiftRule, BitShiftKernel, ElementwiseAxis},
    {"Max", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, MaxKernel, ElementwiseAxis},
    {"Min", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, MinKernel, ElementwiseAxis},
    {"Sum", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, SumKernel, ElementwiseAxis},
    {"Mean", 1, -1, 1, 1, kElementwise, 0, BroadcastRule<kNumbers>, MeanKernel, ElementwiseAxis},
    {"com.microsoft.BiasGelu", 2, 2, 1, 1, kElementwise, 0, BiasGeluRule, BiasGeluKernel, ElementwiseAxis},
    {"com.microsoft.FastGelu", 1, 2, 1, 1, kElementwise, 0, BiasGeluRule, FastGeluKernel, ElementwiseAxis},
    // Elementwise, choosing and converting.
    {"Where", 3, 3, 1, 1, kElementwise, 0, WhereRule, WhereKernel, ElementwiseAxis, TypeLike<1>},
    {"Clip", 1, 3, 1, 1, kElementwise, 0, ClipRule, ClipKernel, ElementwiseAxis},
    {"Cast", 1, 1, 1, 1, kElementwise, 0, CastRule, CastKernel, ElementwiseAxis, CastTypes},
    {"CastLike", 2, 2, 1, 1, 0, 0, CastLikeRule, CastKernel, ElementwiseAxis, TypeLike<1>},
    // No view: it is how a graph says that bytes must be copied.
    {"Identity", 1, 1, 1, 1, kElementwise, 0, SameRule<kAnyType>, CopyKernel, ElementwiseAxis},
    {"Dropout", 1, 3, 1, 2, kElementwise, 6, DropoutRule, DropoutKernel, ElementwiseAxis, TypeOfEach<TypeLike<0>, kBool>},
    // Shapes.
    {"Shape", 1, 1, 1, 1, kShapeOnly, 0, ShapeRule, ShapeKernel, KnownAxis, kInt64},
    {"Size", 1, 1, 1, 1, kShapeOnly, 0, SizeRule, SizeKernel, KnownAxis, kInt64},
    {"Reshape", 2, 2, 1, 1, kView, 0b10, ReshapeRule, CopyKernel, ViewAxis},
    {"Squeeze", 1, 2, 1, 1, kView, 0b10, SqueezeRule, CopyKernel, ViewAxis},
    {"Unsqueeze", 2, 2, 1, 1, kView, 0b10, UnsqueezeRule, CopyKernel, ViewAxis},
    {"Flatten", 1, 1, 1, 1, kView, 0, FlattenRule, CopyKernel, ViewAxis},
    {"ConstantOfShape", 1, 1, 1, 1, 0, 0b1, ConstantOfShapeRule, ConstantOfShapeKernel, KnownAxis, ConstantOfShapeTypes},
    {"Range", 3, 3, 1, 1, 0, 0b111, RangeRule, RangeKernel, KnownAxis},
    {"EyeLike", 1, 1, 1, 1, kShapeOnly, 0, EyeLikeRule, EyeLikeKernel, KnownAxis, DTypeOrLikeTypes},
    // Random numbers.
    {"RandomNormal", 0, 0, 1, 1, kNoFold, 0, RandomRule, RandomNormalKernel, UnknownAxis, RandomTypes},
    {"RandomUniform", 0, 0, 1, 1, kNoFold, 0, RandomRule, RandomUniformKernel, UnknownAxis, RandomTypes},
    {"RandomNormalLike", 1, 1, 1, 1, kShapeOnly | kNoFold, 0, RandomLikeRule, RandomNormalKernel, UnknownAxis, DTypeOrLikeTypes},
    {"RandomUniformLike", 1, 1, 1, 1, kShapeOnly | kNoFold, 0, RandomLikeRule, RandomUniformKernel, UnknownAxis, DTypeOrLikeTypes},
    {"Bernoulli", 1, 1, 1, 1, kNoFold, 0, BernoulliRule, BernoulliKernel, UnknownAxis, DTypeOrLikeTypes},
    // As many elements as the data says.
    {"NonZero", 1, 1, 1, 1, kDataDependent, 0b1, NonZeroRule, NonZeroKernel, UnknownAxis, kInt64},
    {"Compress", 2, 2, 1, 1, kDataDependent, 0b10, CompressRule, CompressKernel, UnknownAxis},
    {"Unique", 1, 1, 1, 4, kDataDependent, 0b1, UniqueRule, UniqueKernel, UnknownAxis, TypeOfEach<TypeLike<0>, kInt64>},
    {"NonMaxSuppression", 2, 5, 1, 1, kDataDependent, 0b11111, NonMaxSuppressionRule, NonMaxSuppressionKernel, UnknownAxis, kInt64},
    {"If", 1, -1, 1, -1, 0, 0b1, IfRule, IfKernel, UnknownAxis, IfTypes},
    {"Loop", 3, -1, 0, -1, kNoFold, 0, LoopRule, LoopKernel, UnknownAxis, LoopTypes},
    {"reprise.LoopStep", 0, 0, 2, -1, kInternal | kNoFold, 0, LoopStepRule, LoopStepKernel, UnknownAxis, LoopStepTypes},
    // Moving elements.
    {"reprise.SelectItem", 2, -1, 1, 1, kInternal, 0b1, SelectItemRule, SelectItemKernel, UnknownAxis, TypeLike<1>},
    {"Transpose", 1, 1, 1, 1, 0, 0, TransposeRule, TransposeKernel, TransposeAxis},
    {"Concat", 1, -1, 1, 1, 0, 0, ConcatRule, ConcatKernel, ConcatAxis},
    {"Split", 1, 2, 1, -1, 0, 0b10, SplitRule, SplitKernel, SplitAxis},
    {"Slice", 3, 5, 1, 1, 0, 0b11110, SliceRule, SliceKernel, SliceAxis},
    {"Expand", 2, 2, 1, 1, 0, 0b10, ExpandRule, ExpandKernel, ExpandAxis},
    {"Tile", 2, 2, 1, 1, 0, 0b10, TileRule, TileKernel, TileAxis},
    {"Pad", 2, 4, 1, 1, 0, 0b1010, PadRule, PadKernel, UnknownAxis},
    {"Trilu", 1, 2, 1, 1, 0, 0, TriluRule, TriluKernel, TriluAxis},
    {"DepthToSpace", 1, 1, 1, 1, 0, 0, DepthToSpaceRule, DepthToSpaceKernel, UnknownAxis},
    {"SpaceToDepth", 1, 1, 1, 1, 0, 0, SpaceToDepthRule, SpaceToDepthKernel, UnknownAxis},
    {"ReverseSequence", 2, 2, 1, 1, 0, 0, ReverseSequenceRule, ReverseSequenceKernel, UnknownAxis},
    {"Resize", 1, 4, 1, 1, 0, 0b1100, ResizeRule, ResizeKernel, ResizeAxis},
    {"GridSample", 2, 2, 1, 1, 0, 0, GridSampleRule, GridSampleKernel, GridSampleAxis},
    {"AffineGrid", 2, 2, 1, 1, 0, 0b10, AffineGridRule, AffineGridKernel, AffineGridAxis},
    {"Col2Im", 3, 3, 1, 1, 0, 0b110, Col2ImRule, Col2ImKernel, Col2ImAxis},
    {"MaxUnpool", 2, 3, 1, 1, 0, 0b100, MaxUnpoolRule, MaxUnpoolKernel, MaxUnpoolAxis},
    {"RoiAlign", 3, 3, 1, 1, 0, 0, RoiAlignRule, RoiAlignKernel, RoiAlignAxis},
    // Gathering and scattering.
    {"Gather", 2, 2, 1, 1, 0, 0, GatherRule, GatherKernel, GatherAxis},
    {"GatherElements", 2, 2, 1, 1, 0, 0, GatherElementsRule, GatherElementsKernel, GatherElementsAxis},
    {"GatherND", 2, 2, 1, 1, 0, 0, GatherNDRule, GatherNDKernel, DataAxis},
    {"ScatterElements", 3, 3, 1, 1, 0, 0, ScatterElementsRule, ScatterElementsKernel, DataAxis},
    {"ScatterND", 3, 3, 1, 1, 0, 0, ScatterNDRule, ScatterNDKernel, DataAxis},
    {"OneHot", 3, 3, 1, 1, 0, 0b10, OneHotRule, OneHotKernel, OneHotAxis, TypeLike<2>},
    {"reprise.CheckRange", 1, 1, 1, 1, kElementwise | kInternal, 0, SameRule<kIndices>, CheckRangeKernel, ElementwiseAxis},
    {"reprise.EmbeddingSum", 2, -1, 1, 1, kInternal, 0, EmbeddingSumRule, EmbeddingSumKernel, UnknownAxis},
    // Reductions.
    {"ReduceSum", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumKernel, ReduceSumAxis},
    {"ReduceMean", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceMeanKernel, ReduceMeanAxis},
    {"ReduceProd", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceProdKernel, ReduceProdAxis},
    {"ReduceL1", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL1Kernel, ReduceNormAxis},
    {"ReduceL2", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL2Kernel, ReduceNormAxis},
    {"ReduceSumSquare", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumSquareKernel, ReduceNormAxis},
    {"ReduceLogSum", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumKernel, ReduceSumAxis},
    {"ReduceLogSumExp", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumExpKernel, ReduceLogSumExpAxis},
    {"ReduceMax", 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMaxKernel, ReduceMaxAxis},
    {"ReduceMin", 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMinKernel, ReduceMinAxis},
    {"ArgMax", 1, 1, 1, 1, 0, 0, ArgRule, ArgMaxKernel, ArgMaxAxis, kInt64},
    {"ArgMin", 1, 1, 1, 1, 0, 0, ArgRule, ArgMinKernel, ArgMinAxis, kInt64},
    {"TopK", 2, 2, 2, 2, 0, 0b10, TopKRule, TopKKernel, TopKAxis, TypeOfEach<TypeLike<0>, kInt64>},
    {"CumSum", 2, 2, 1, 1, 0, 0, CumSumRule, CumSumKernel, CumulativeAxis},
    {"DFT", 1, 3, 1, 1, 0, 0b110, DftRule, DftKernel, UnknownAxis},
    {"STFT", 2, 4, 1, 1, 0, 0b1010, StftRule, StftKernel, StftAxis},
    {"MelWeightMatrix", 5, 5, 1, 1, 0, 0b11, MelWeightMatrixRule, MelWeightMatrixKernel, UnknownAxis, MelWeightMatrixTypes},
    {"CumProd", 2, 2, 1, 1, 0, 0, CumSumRule, CumProdKernel, CumulativeAxis},
    // Matrix products.
    {"MatMul", 2, 2, 1, 1, 0, 0, MatMulRule, MatMulKernel, MatMulAxis},
    {"Gemm", 2, 3, 1, 1, 0, 0, GemmRule, GemmKernel, GemmAxis},
    {"MatMulInteger", 2, 4, 1, 1, 0, 0, MatMulIntegerRule, MatMulIntegerKernel, MatMulIntegerAxis, kInt32},
    {"Einsum", 1, -1, 1, 1, 0, 0, EinsumRule, EinsumKernel, EinsumAxis},
    {"Det", 1, 1, 1, 1, 0, 0, DetRule, DetKernel, DetAxis},
    {"com.microsoft.FusedMatMul", 2, 2, 1, 1, 0, 0, FusedMatMulRule, FusedMatMulKernel, GemmAxis},
    {"reprise.Linear", 2, 4, 1, 1, kInternal, 0, LinearRule, LinearKernel, UnknownAxis},
    {"reprise.IntegerLinear", 4, 8, 1, 1, kInternal, 0, IntegerLinearRule, IntegerLinearKernel, UnknownAxis, kFloat32},
    // Convolution and pooling.
    {"Conv", 2, 3, 1, 1, 0, 0, ConvRule, ConvKernel, ConvAxis},
    {"reprise.ByteTable", 2, 2, 1, 1, kInternal, 0, ByteTableRule, ByteTableKernel, UnknownAxis, TypeLike<1>},
    {"reprise.IntegerAdd", 8, 8, 1, 1, kInternal, 0, IntegerAddRule, IntegerAddKernel, UnknownAxis, TypeLike<7>},
    {"reprise.IntegerConv", 4, 10, 1, 1, kInternal, 0, IntegerConvRule, IntegerConvKernel, UnknownAxis, TypeLikeOr<9, DType::kFloat32>},
    {"reprise.Conv", 2, 4, 1, 1, kInternal, 0, FusedConvRule, FusedConvKernel, UnknownAxis},
    {"DeformConv", 3, 5, 1, 1, 0, 0, DeformConvRule, DeformConvKernel, DeformConvAxis},
    {"reprise.DeformColumns", 2, 3, 1, 1, kInternal, 0, DeformColumnsRule, DeformColumnsKernel, DeformColumnsAxis},
    {"ConvTranspose", 2, 3, 1, 1, 0, 0, ConvTransposeRule, ConvTransposeKernel, ConvTransposeAxis},
    {"reprise.ConvTranspose", 2, 3, 1, 1, kInternal, 0, FusedConvTransposeRule, FusedConvTransposeKernel, UnknownAxis},
    {"AveragePool", 1, 1, 1, 1, 0, 0, AveragePoolRule, AveragePoolKernel, AveragePoolAxis},
    {"MaxPool", 1, 1, 1, 2, 0, 0, MaxPoolRule, MaxPoolKernel, MaxPoolAxis, TypeOfEach<TypeLike<0>, kInt64>},
    {"LpPool", 1, 1, 1, 1, 0, 0, LpPoolRule, LpPoolKernel, LpPoolAxis},
    {"GlobalAveragePool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalAveragePoolKernel, GlobalPoolAxis},
    {"GlobalMaxPool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalMaxPoolKernel, GlobalPoolAxis},
    {"GlobalLpPool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalLpPoolKernel, GlobalPoolAxis},
    // Recurrent layers.
    {"LSTM", 3, 8, 1, 3, 0, 0, LstmRule, LstmKernel, RecurrentAxis},
    {"GRU", 3, 6, 1, 2, 0, 0, GruRule, GruKernel, RecurrentAxis},
    {"RNN", 3, 6, 1, 2, 0, 0, RnnRule, RnnKernel, RecurrentAxis},
    // Normalisations.
    {"Softmax", 1, 1, 1, 1, 0, 0, SoftmaxRule, SoftmaxKernel, SoftmaxAxis},
    {"LogSoftmax", 1, 1, 1, 1, 0, 0, SoftmaxRule, LogSoftmaxKernel, SoftmaxAxis},
    {"Hardmax", 1, 1, 1, 1, 0, 0, SoftmaxRule, HardmaxKernel, SoftmaxAxis},
    {"LayerNormalization", 2, 3, 1, 3, 0, 0, LayerNormalizationRule, LayerNormalizationKernel, LastDimsNormAxis, TypeOfEach<TypeLike<0>, StashTypes>},
    {"RMSNormalization", 2, 2, 1, 1, 0, 0, RmsNormalizationRule, RmsNormalizationKernel, LastDimsNormAxis},
    {"BatchNormalization", 5, 5, 1, 1, 0, 0, BatchNormalizationRule, BatchNormalizationKernel, BatchNormAxis},
    {"InstanceNormalization", 3, 3, 1, 1, 0, 0, InstanceNormalizationRule, InstanceNormalizationKernel, InstanceNormAxis},
    {"GroupNormalization", 3, 3, 1, 1, 0, 0, GroupNormalizationRule, GroupNormalizationKernel, GroupNormAxis},
    {"LRN", 1, 1, 1, 1, 0, 0, LrnRule, LrnKernel, LocalNormAxis},
    {"reprise.AddLayerNorm", 3, 4, 1, 2, kInternal, 0, AddLayerNormRule, AddLayerNormKernel, LastDimsNormAxis},
    {"com.microsoft.SkipLayerNormalization", 3, 5, 1, 4, 0, 0, SkipLayerNormRule, SkipLayerNormKernel, LastDimsNormAxis},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, 1, 4, 0, 0, SkipSimplifiedLayerNormRule, SkipSimplifiedLayerNormKernel, LastDimsNormAxis},
    // Attention.
    {"Attention", 3, 7, 1, 4, 0, 0, OnnxAttentionRule, OnnxAttentionKernel, AttentionAxis, TypeOfEach<TypeLike<0>, TypeLike<1>, TypeLike<2>, TypeLike<0>>},
    {"RotaryEmbedding", 3, 4, 1, 1, 0, 0, RotaryEmbeddingRule, RotaryEmbeddingKernel, UnknownAxis},
    {"com.microsoft.Attention", 2, 7, 1, 1, 0, 0, MicrosoftAttentionRule, MicrosoftAttentionKernel, AttentionAxis},
    {"com.microsoft.MultiHeadAttention", 1, 10, 1, 3, 0, 0, MultiHeadAttentionRule, MultiHeadAttentionKernel, AttentionAxis},
    {"com.microsoft.QAttention", 5, 9, 1, 1, 0, 0, QAttentionRule, QAttentionKernel, AttentionAxis, TypeLike<3>},
    {"com.microsoft.RotaryEmbedding", 4, 4, 1, 1, 0, 0, MicrosoftRotaryEmbeddingRule, MicrosoftRotaryEmbeddingKernel, UnknownAxis},
    {"com.microsoft.EmbedLayerNormalization", 1, 9, 1, 3, 0, 0, EmbedLayerNormRule, EmbedLayerNormKernel, UnknownAxis, TypeOfEach<TypeLike<2>, kInt32, TypeLike<2>>},
    {"reprise.AppendRows", 4, 4, 1, 1, kInternal, 0b1000, AppendRowsRule, AppendRowsKernel, UnknownAxis},
    {"reprise.Rotary", 3, 3, 1, 1, kInternal, 0, RotaryRule, RotaryKernel, UnknownAxis},
    {"reprise.Attention", 1, 4, 1, 1, kInternal, 0, AttentionRule, AttentionKernel, UnknownAxis},
    {"reprise.RelativeAttention", 3, 11, 1, 1, kInternal, 0, RelativeAttentionRule, RelativeAttentionKernel, UnknownAxis},
    // Caches of decoders in pages.
    {"reprise.CachedRows", 1, 1, 1, 1, kInternal | kNoFold, 0, CachedRowsRule, CachedRowsKernel, UnknownAxis, kFloat32},
    {"reprise.PagedAttention", 5, 5, 1, 1, kInternal | kNoFold, 0, PagedAttentionRule, PagedAttentionKernel, UnknownAxis},
    // Packed tokens.
    {"reprise.SegmentAttention", 1, 7, 1, 1, kInternal, 0, SegmentAttentionRule, SegmentAttentionKernel, UnknownAxis},
    {"reprise.SegmentReduce", 2, 2, 1, 1, kInternal, 0, SegmentReduceRule, SegmentReduceKernel, UnknownAxis},
    {"reprise.SegmentSpread", 3, 3, 1, 1, kInternal, 0, SegmentSpreadRule, SegmentSpreadKernel, UnknownAxis},
    {"reprise.SegmentPlace", 2, 2, 1, 1, kInternal, 0, SegmentPlaceRule, SegmentPlaceKernel, UnknownAxis, kInt64},
    {"reprise.SegmentPick", 3, 3, 1, 1, kInternal, 0, SegmentPickRule, SegmentPickKernel, UnknownAxis},
    {"reprise.SegmentCumSum", 2, 2, 1, 1, kInternal, 0, SegmentCumSumRule, SegmentCumSumKernel, UnknownAxis},
    {"reprise.SegmentDynamicQuantizeLinear", 1, 2, 1, 3, kInternal, 0, SegmentDynamicQuantizeRule, SegmentDynamicQuantizeKernel, SegmentDynamicQuantizeAxis, TypeOfEach<kUInt8, kFloat32, kUInt8>},
    // Classic models.
    {"reprise.TreeEnsemble", 2, 2, 1, 1, kInternal, 0, TreeEnsembleRule, TreeEnsembleKernel, RowsAxis, kFloat64},
    {"reprise.ClassScores", 1, 1, 1, 2, kInternal, 0, ClassScoresRule, ClassScoresKernel, RowsAxis, TypeOfEach<ClassScoresTypes, kInt64>},
    {"reprise.SvmScores", 1, 1, 1, 2, kInternal, 0, SvmScoresRule, SvmScoresKernel, RowsAxis, TypeOfEach<TypeLike<0>, kInt64>},
    {"reprise.Distances", 2, 2, 1, 1, kInternal, 0, DistancesRule, DistancesKernel, RowsAxis},
    {"reprise.CategoryIndex", 2, 2, 1, 1, kInternal, 0, CategoryIndexRule, CategoryIndexKernel, CategoriesAxis, kInt64},
    // Quantisation.
    {"DequantizeLinear", 2, 3, 1, 1, 0, 0, DequantizeLinearRule, DequantizeLinearKernel, ElementwiseAxis, TypeLike<1>},
    {"QuantizeLinear", 2, 3, 1, 1, 0, 0, QuantizeLinearRule, QuantizeLinearKernel, ElementwiseAxis, QuantizeLinearTypes},
    {"reprise.FakeQuantize", 2, 3, 1, 1, kInternal, 0, FakeQuantizeRule, FakeQuantizeKernel, UnknownAxis},
    {"DynamicQuantizeLinear", 1, 1, 1, 3, 0, 0, DynamicQuantizeLinearRule, DynamicQuantizeLinearKernel, DynamicQuantizeAxis, TypeOfEach<kUInt8, kFloat32, kUInt8>},
    {"QLinearMatMul", 8, 8, 1, 1, 0, 0, QLinearMatMulRule, QLinearMatMulKernel, QLinearMatMulAxis, TypeLike<7>},
    {"reprise.FromFloat8", 1, 1, 1, 1, kInternal | kElementwise, 0, FromFloat8Rule, FromFloat8Kernel, ElementwiseAxis, kFloat32},
    {"reprise.ToFloat8", 1, 1, 1, 1, kInternal | kElementwise, 0, ToFloat8Rule, ToFloat8Kernel, ElementwiseAxis, kUInt8},
    {"reprise.DequantizeFloat8", 2, 2, 1, 1, kInternal, 0, DequantizeFloat8Rule, DequantizeFloat8Kernel, ElementwiseAxis, kFloat32},
    {"reprise.QuantizeFloat8", 2, 2, 1, 1, kInternal, 0, QuantizeFloat8Rule, QuantizeFloat8Kernel, ElementwiseAxis, kUInt8},
    {"reprise.UnpackNibbles", 1, 1, 1, 1, kInternal, 0, UnpackNibblesRule, UnpackNibblesKernel, UnknownAxis},
    {"reprise.DequantizeBits", 2, 3, 1, 1, kInternal, 0, DequantizeBitsRule, DequantizeBitsKernel, UnknownAxis, TypeLike<1>},
};
// clang-format on

}  // namespace
}  // namespace ops

absl::Span<const OpRow> AllOps() { return ops::kRows; }

}  // namespace reprise
