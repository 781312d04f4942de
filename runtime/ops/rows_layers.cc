// Rows of the op table: reductions, products, windows, recurrent layers and normalisations.
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/op_rows.h"
#include "runtime/ops/products/det.h"
#include "runtime/ops/products/einsum.h"
#include "runtime/ops/products/fourier.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/products/mel_weights.h"
#include "runtime/ops/products/stft.h"
#include "runtime/ops/quantized/byte_op.h"
#include "runtime/ops/quantized/byte_table.h"
#include "runtime/ops/quantized/integer_add.h"
#include "runtime/ops/quantized/integer_conv.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/integer_linear.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/recurrent/recurrent.h"
#include "runtime/ops/recurrent/recurrent_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/ops/reduce/group_norm.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/ops/reduce/local_norm.h"
#include "runtime/ops/reduce/norm.h"
#include "runtime/ops/reduce/reduce.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/ops/result_types.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/conv_transpose.h"
#include "runtime/ops/windows/deform_conv.h"
#include "runtime/ops/windows/live.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/ops/windows/pool.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise::ops {
namespace {

// clang-format off
constexpr OpEntry kLayerRows[] = {
    // Reductions.
    {{ReduceSumOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumKernel, ReduceSumAxis},
     {.sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kReduceSum, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight, .of_segment = "sum"}},
    {{ReduceMeanOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceMeanKernel, ReduceMeanAxis},
     {.sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kMean, .marks = kReduces | kLight, .of_segment = "mean"}},
    {{ReduceProdOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceProdKernel, ReduceProdAxis},
     {.sign = Sign::kOfOperands, .sizes = Sizes::kReduceProduct, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .marks = kReduces | kLight}},
    {{ReduceL1Op::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL1Kernel, ReduceNormAxis},
     {.sign = Sign::kNeverNegative, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight}},
    {{ReduceL2Op::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL2Kernel, ReduceNormAxis},
     {.sign = Sign::kNeverNegative, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight}},
    {{"ReduceSumSquare", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumSquareKernel, ReduceNormAxis},
     {.sign = Sign::kNeverNegative, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight}},
    {{"ReduceLogSum", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumKernel, ReduceSumAxis},
     {.overflow = Overflow::kAlways, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .marks = kReduces | kLight}},
    {{"ReduceLogSumExp", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumExpKernel, ReduceLogSumExpAxis},
     {.growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kLargest, .marks = kReduces | kLight}},
    {{ReduceMaxOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMaxKernel, ReduceMaxAxis},
     {.sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kLargest, .marks = kBends | kReduces | kLight | kPicks, .of_segment = "max"}},
    {{ReduceMinOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMinKernel, ReduceMinAxis},
     {.sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .growth = Growth::kReduces, .rows = RowRule::kReduction, .packing = PackRule::kReduce, .border = Border::kSmallest, .marks = kBends | kReduces | kLight | kPicks, .of_segment = "min"}},
    {{ArgMaxOp::kName, 1, 1, 1, 1, 0, 0, ArgRule, ArgMaxKernel, ArgMaxAxis, kInt64},
     {.sign = Sign::kNeverNegative, .growth = Growth::kReduces, .rows = RowRule::kAlongAxis, .packing = PackRule::kPlace, .marks = kBends | kReduces | kLight | kCoarse | kBounds}},
    {{ArgMinOp::kName, 1, 1, 1, 1, 0, 0, ArgRule, ArgMinKernel, ArgMinAxis, kInt64},
     {.sign = Sign::kNeverNegative, .growth = Growth::kReduces, .rows = RowRule::kAlongAxis, .packing = PackRule::kPlace, .marks = kBends | kReduces | kLight | kCoarse | kBounds}},
    {{TopKOp::kName, 2, 2, 2, 2, 0, 0b10, TopKRule, TopKKernel, TopKAxis, TypeOfEach<TypeLike<0>, kInt64>},
     {.sign = Sign::kPlacesAlone, .packing = PackRule::kAlongAxis, .axis = -1, .marks = kBends | kLight | kCoarse | kPicks}},
    {{CumSumOp::kName, 2, 2, 1, 1, 0, 0, CumSumRule, CumSumKernel, CumulativeAxis},
     {.sign = Sign::kOfOperands, .growth = Growth::kCumulates, .packing = PackRule::kCumSum, .choosers = 0b10, .marks = kReduces | kLight}},
    {{"DFT", 1, 3, 1, 1, 0, 0b110, DftRule, DftKernel, UnknownAxis},
     {.marks = kHeavy}},
    {{"STFT", 2, 4, 1, 1, 0, 0b1010, StftRule, StftKernel, StftAxis}},
    {{"MelWeightMatrix", 5, 5, 1, 1, 0, 0b11, MelWeightMatrixRule, MelWeightMatrixKernel, UnknownAxis, MelWeightMatrixTypes}},
    {{"CumProd", 2, 2, 1, 1, 0, 0, CumSumRule, CumProdKernel, CumulativeAxis},
     {.choosers = 0b10}},
    // Matrix products.
    {{MatMulOp::kName, 2, 2, 1, 1, 0, 0, MatMulRule, MatMulKernel, MatMulAxis},
     {.sign = Sign::kOfOperands, .growth = Growth::kProduct, .rows = RowRule::kMatMul, .packing = PackRule::kProduct, .rounding = Rounding::kProduct, .border = Border::kProduct, .weights = 0b11, .marks = kSettledByWeights | kMultipliesWeights | kHeavy}},
    {{GemmOp::kName, 2, 3, 1, 1, 0, 0, GemmRule, GemmKernel, GemmAxis},
     {.rows = RowRule::kLinear, .packing = PackRule::kProduct, .rounding = Rounding::kProduct, .weights = 0b110, .marks = kSettledByWeights | kMultipliesWeights | kHeavy}},
    {{MatMulIntegerOp::kName, 2, 4, 1, 1, 0, 0, MatMulIntegerRule, MatMulIntegerKernel, MatMulIntegerAxis, kInt32},
     {.rows = RowRule::kMatMulInteger, .packing = PackRule::kProduct, .marks = kMultipliesWeights | kHeavy}},
    {{EinsumOp::kName, 1, -1, 1, 1, 0, 0, EinsumRule, EinsumKernel, EinsumAxis},
     {.growth = Growth::kContraction, .marks = kMultipliesWeights | kHeavy, .becomes = MatMulOp::kName}},
    {{"Det", 1, 1, 1, 1, 0, 0, DetRule, DetKernel, DetAxis},
     {.growth = Growth::kReduces, .rows = RowRule::kLastDims, .packing = PackRule::kLastDims, .marks = kHeavy}},
    {{FusedMatMulOp::kName, 2, 2, 1, 1, 0, 0, FusedMatMulRule, FusedMatMulKernel, GemmAxis},
     {.rows = RowRule::kMatMul, .marks = kMultipliesWeights, .becomes = MatMulOp::kName}},
    {{LinearOp::kName, 2, 4, 1, 1, kInternal, 0, LinearRule, LinearKernel, UnknownAxis},
     {.rows = RowRule::kLinear, .packing = PackRule::kProduct, .positions = PositionRule::kLinear, .rounding = Rounding::kProduct, .marks = kMultipliesWeights}},
    {{IntegerLinearOp::kName, 4, 8, 1, 1, kInternal, 0, IntegerLinearRule, IntegerLinearKernel, UnknownAxis, kFloat32},
     {.rows = RowRule::kIntegerLinear, .packing = PackRule::kProduct, .positions = PositionRule::kLinear, .marks = kMultipliesWeights}},
    // Convolution and pooling.
    {{ConvOp::kName, 2, 3, 1, 1, 0, 0, ConvRule, ConvKernel, ConvAxis},
     {.rows = RowRule::kFirstAlone, .border = Border::kWindow, .weights = 0b110, .marks = kMultipliesWeights | kHeavy}},
    {{ByteTableOp::kName, 2, 2, 1, 1, kInternal, 0, ByteTableRule, ByteTableKernel, UnknownAxis, TypeLike<1>},
     {.rows = RowRule::kFirst, .packing = PackRule::kByteTable}},
    {{IntegerAddOp::kName, 8, 8, 1, 1, kInternal, 0, IntegerAddRule, IntegerAddKernel, UnknownAxis, TypeLike<7>},
     {.rows = RowRule::kAllFollow}},
    {{IntegerConvOp::kName, 4, 10, 1, 1, kInternal, 0, IntegerConvRule, IntegerConvKernel, UnknownAxis, TypeLikeOr<9, DType::kFloat32>},
     {.rows = RowRule::kIntegerConv, .marks = kMultipliesWeights}},
    {{FusedConvOp::kName, 2, 4, 1, 1, kInternal, 0, FusedConvRule, FusedConvKernel, UnknownAxis},
     {.rows = RowRule::kConv, .marks = kMultipliesWeights}},
    {{DeformConvOp::kName, 3, 5, 1, 1, 0, 0, DeformConvRule, DeformConvKernel, DeformConvAxis},
     {.marks = kHeavy, .becomes = DeformColumnsOp::kName}},
    {{DeformColumnsOp::kName, 2, 3, 1, 1, kInternal, 0, DeformColumnsRule, DeformColumnsKernel, DeformColumnsAxis},
     {.rows = RowRule::kAll}},
    {{ConvTransposeOp::kName, 2, 3, 1, 1, 0, 0, ConvTransposeRule, ConvTransposeKernel, ConvTransposeAxis},
     {.rows = RowRule::kFirstAlone, .weights = 0b110, .marks = kMultipliesWeights | kHeavy}},
    {{FusedConvTransposeOp::kName, 2, 3, 1, 1, kInternal, 0, FusedConvTransposeRule, FusedConvTransposeKernel, UnknownAxis},
     {.rows = RowRule::kFirstAlone, .marks = kMultipliesWeights}},
    {{AveragePoolOp::kName, 1, 1, 1, 1, 0, 0, AveragePoolRule, AveragePoolKernel, AveragePoolAxis},
     {.sign = Sign::kOfOperands, .rows = RowRule::kFirstAlone, .border = Border::kCountedWindow, .marks = kHeavy}},
    {{MaxPoolOp::kName, 1, 1, 1, 2, 0, 0, MaxPoolRule, MaxPoolKernel, MaxPoolAxis, TypeOfEach<TypeLike<0>, kInt64>},
     {.sign = Sign::kOfOperands, .rows = RowRule::kFirstAlone, .border = Border::kLargestWindow, .marks = kHeavy | kPicks}},
    {{"LpPool", 1, 1, 1, 1, 0, 0, LpPoolRule, LpPoolKernel, LpPoolAxis},
     {.rows = RowRule::kFirstAlone, .border = Border::kWindow, .marks = kHeavy}},
    {{GlobalAveragePoolOp::kName, 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalAveragePoolKernel, GlobalPoolAxis},
     {.sign = Sign::kOfOperands, .rows = RowRule::kFirstAlone, .border = Border::kMean}},
    {{GlobalMaxPoolOp::kName, 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalMaxPoolKernel, GlobalPoolAxis},
     {.sign = Sign::kOfOperands, .rows = RowRule::kFirstAlone, .border = Border::kLargest, .marks = kPicks}},
    {{"GlobalLpPool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalLpPoolKernel, GlobalPoolAxis},
     {.rows = RowRule::kFirstAlone}},
    // Where the rows of a padded batch end.
    {{LiveExtentOp::kName, 2, 2, 1, 1, kInternal, 0b10, LiveExtentRule, LiveExtentKernel, LiveExtentAxis, kInt32},
     {.sign = Sign::kNeverNegative, .positive = Positive::kAlways, .rows = RowRule::kFirst, .marks = kTakesSizes}},
    {{LiveFillOp::kName, 2, 2, 1, 1, kInternal, 0, LiveFillRule, LiveFillKernel, LiveFillAxis},
     {.sign = Sign::kOfOperands, .rows = RowRule::kAll, .marks = kCarriesMasks}},
    {{LiveMaskOp::kName, 2, 2, 1, 1, kInternal, 0b10, LiveMaskRule, LiveMaskKernel, LiveMaskAxis, kFloat32},
     {.rows = RowRule::kFirst, .marks = kTakesSizes}},
    {{LiveShareOp::kName, 2, 2, 1, 1, kInternal, 0b10, LiveShareRule, LiveShareKernel, LiveShareAxis, kFloat32},
     {.sign = Sign::kNeverNegative, .rows = RowRule::kFirst, .marks = kTakesSizes}},
    {{LiveCompactOp::kName, 3, -1, 1, 1, kInternal, 0b10, LiveCompactRule, LiveCompactKernel, LiveCompactAxis},
     {.sign = Sign::kOfOperands, .rows = RowRule::kFirst, .marks = kTakesSizes}},
    // Recurrent layers.
    {{LstmOp::kName, 3, 8, 1, 3, 0, 0, LstmRule, LstmKernel, RecurrentAxis},
     {.border = Border::kLengths, .weights = 0b1110, .marks = kMultipliesWeights | kHeavy | kBounds}},
    {{GruOp::kName, 3, 6, 1, 2, 0, 0, GruRule, GruKernel, RecurrentAxis},
     {.border = Border::kLengths, .weights = 0b1110, .marks = kMultipliesWeights | kHeavy | kBounds}},
    {{RnnOp::kName, 3, 6, 1, 2, 0, 0, RnnRule, RnnKernel, RecurrentAxis},
     {.border = Border::kLengths, .weights = 0b1110, .marks = kMultipliesWeights | kHeavy | kBounds}},
    // Normalisations.
    {{SoftmaxOp::kName, 1, 1, 1, 1, 0, 0, SoftmaxRule, SoftmaxKernel, SoftmaxAxis},
     {.sign = Sign::kNeverNegative, .growth = Growth::kReduces, .rows = RowRule::kAlongAxis, .packing = PackRule::kAlongAxis, .positions = PositionRule::kAlongAxis, .border = Border::kSoftmax, .axis = -1, .marks = kShapeOfFirst | kBounds}},
    {{LogSoftmaxOp::kName, 1, 1, 1, 1, 0, 0, SoftmaxRule, LogSoftmaxKernel, SoftmaxAxis},
     {.rows = RowRule::kAlongAxis, .packing = PackRule::kAlongAxis, .positions = PositionRule::kAlongAxis, .border = Border::kSoftmax, .axis = -1}},
    {{HardmaxOp::kName, 1, 1, 1, 1, 0, 0, SoftmaxRule, HardmaxKernel, SoftmaxAxis},
     {.sign = Sign::kNeverNegative, .rows = RowRule::kAlongAxis, .packing = PackRule::kAlongAxis, .axis = -1, .marks = kCoarse | kBounds}},
    {{LayerNormalizationOp::kName, 2, 3, 1, 3, 0, 0, LayerNormalizationRule, LayerNormalizationKernel, LastDimsNormAxis, TypeOfEach<TypeLike<0>, StashTypes>},
     {.rows = RowRule::kAlongAxis, .packing = PackRule::kAlongAxis, .positions = PositionRule::kNorm, .axis = -1, .weights = 0b110, .marks = kSettled | kShapeOfFirst | kBounds}},
    {{RmsNormalizationOp::kName, 2, 2, 1, 1, 0, 0, RmsNormalizationRule, RmsNormalizationKernel, LastDimsNormAxis},
     {.rows = RowRule::kAlongAxis, .packing = PackRule::kAlongAxis, .positions = PositionRule::kNorm, .axis = -1, .marks = kSettled | kShapeOfFirst | kBounds}},
    {{BatchNormalizationOp::kName, 5, 5, 1, 1, 0, 0, BatchNormalizationRule, BatchNormalizationKernel, BatchNormAxis},
     {.weights = 0b11110, .becomes = FusedConvOp::kName}},
    {{InstanceNormalizationOp::kName, 3, 3, 1, 1, 0, 0, InstanceNormalizationRule, InstanceNormalizationKernel, InstanceNormAxis},
     {.rows = RowRule::kFirstAlone, .border = Border::kNorm, .marks = kBounds}},
    {{GroupNormalizationOp::kName, 3, 3, 1, 1, 0, 0, GroupNormalizationRule, GroupNormalizationKernel, GroupNormAxis},
     {.rows = RowRule::kFirstAlone, .marks = kBounds}},
    {{"LRN", 1, 1, 1, 1, 0, 0, LrnRule, LrnKernel, LocalNormAxis},
     {.rows = RowRule::kFirstAlone, .marks = kHeavy}},
    {{AddLayerNormOp::kName, 3, 4, 1, 2, kInternal, 0, AddLayerNormRule, AddLayerNormKernel, LastDimsNormAxis},
     {.rows = RowRule::kAddNorm, .packing = PackRule::kAlongAxis, .positions = PositionRule::kNorm, .axis = -1}},
    {{SkipLayerNormOp::kName, 3, 5, 1, 4, 0, 0, SkipLayerNormRule, SkipLayerNormKernel, LastDimsNormAxis},
     {.becomes = LayerNormalizationOp::kName}},
    {{SkipSimplifiedLayerNormOp::kName, 3, 4, 1, 4, 0, 0, SkipSimplifiedLayerNormRule, SkipSimplifiedLayerNormKernel, LastDimsNormAxis},
     {.becomes = RmsNormalizationOp::kName}},
};
// clang-format on

}  // namespace

absl::Span<const OpEntry> LayerRows() { return kLayerRows; }

}  // namespace reprise::ops
