// Rows of the op table: reductions, products, windows, recurrent layers and normalisations.
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/maps/map_rules.h"
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
     {.map = ReduceMap, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kReduceSum, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight, .of_segment = "sum"}},
    {{ReduceMeanOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceMeanKernel, ReduceMeanAxis},
     {.map = ReduceMap, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kMean, .marks = kReduces | kLight, .of_segment = "mean"}},
    {{ReduceProdOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceProdKernel, ReduceProdAxis},
     {.map = ReduceMap, .sign = Sign::kOfOperands, .sizes = Sizes::kReduceProduct, .packing = PackRule::kReduce, .marks = kReduces | kLight}},
    {{ReduceL1Op::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL1Kernel, ReduceNormAxis},
     {.map = ReduceMap, .sign = Sign::kNeverNegative, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight}},
    {{ReduceL2Op::kName, 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceL2Kernel, ReduceNormAxis},
     {.map = ReduceMap, .sign = Sign::kNeverNegative, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight}},
    {{"ReduceSumSquare", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceSumSquareKernel, ReduceNormAxis},
     {.map = ReduceMap, .sign = Sign::kNeverNegative, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kSum, .marks = kReduces | kLight}},
    {{"ReduceLogSum", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumKernel, ReduceSumAxis},
     {.map = ReduceMap, .overflow = Overflow::kAlways, .growth = Growth::kReduces, .packing = PackRule::kReduce, .marks = kReduces | kLight}},
    {{"ReduceLogSumExp", 1, 2, 1, 1, 0, 0b10, ReduceRule, ReduceLogSumExpKernel, ReduceLogSumExpAxis},
     {.map = ReduceMap, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kLargest, .marks = kReduces | kLight}},
    {{ReduceMaxOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMaxKernel, ReduceMaxAxis},
     {.map = ReduceMap, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kLargest, .marks = kBends | kReduces | kLight, .of_segment = "max"}},
    {{ReduceMinOp::kName, 1, 2, 1, 1, 0, 0b10, ReduceOrderRule, ReduceMinKernel, ReduceMinAxis},
     {.map = ReduceMap, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .growth = Growth::kReduces, .packing = PackRule::kReduce, .border = Border::kSmallest, .marks = kBends | kReduces | kLight, .of_segment = "min"}},
    {{ArgMaxOp::kName, 1, 1, 1, 1, 0, 0, ArgRule, ArgMaxKernel, ArgMaxAxis, kInt64},
     {.map = ArgMap, .sign = Sign::kNeverNegative, .growth = Growth::kReduces, .packing = PackRule::kPlace, .border = Border::kPick, .marks = kBends | kReduces | kLight | kCoarse}},
    {{ArgMinOp::kName, 1, 1, 1, 1, 0, 0, ArgRule, ArgMinKernel, ArgMinAxis, kInt64},
     {.map = ArgMap, .sign = Sign::kNeverNegative, .growth = Growth::kReduces, .packing = PackRule::kPlace, .border = Border::kPick, .marks = kBends | kReduces | kLight | kCoarse}},
    {{TopKOp::kName, 2, 2, 2, 2, 0, 0b10, TopKRule, TopKKernel, TopKAxis, TypeOfEach<TypeLike<0>, kInt64>},
     {.map = TopKMap, .sign = Sign::kPlacesAlone, .packing = PackRule::kAlongAxis, .border = Border::kPick, .axis = -1, .marks = kBends | kLight | kCoarse}},
    {{CumSumOp::kName, 2, 2, 1, 1, 0, 0, CumSumRule, CumSumKernel, CumulativeAxis},
     {.map = CumulativeMap, .sign = Sign::kOfOperands, .growth = Growth::kCumulates, .packing = PackRule::kCumSum, .border = Border::kSum, .choosers = 0b10, .marks = kReduces | kLight}},
    {{"DFT", 1, 3, 1, 1, 0, 0b110, DftRule, DftKernel, UnknownAxis},
     {.marks = kHeavy}},
    {{"STFT", 2, 4, 1, 1, 0, 0b1010, StftRule, StftKernel, MapAxis},
     {.map = StftMap}},
    {{"MelWeightMatrix", 5, 5, 1, 1, 0, 0b11, MelWeightMatrixRule, MelWeightMatrixKernel, UnknownAxis, MelWeightMatrixTypes}},
    {{"CumProd", 2, 2, 1, 1, 0, 0, CumSumRule, CumProdKernel, CumulativeAxis},
     {.map = CumulativeMap, .choosers = 0b10}},
    // Matrix products.
    {{MatMulOp::kName, 2, 2, 1, 1, 0, 0, MatMulRule, MatMulKernel, MatMulAxis},
     {.map = MatMulMap, .sign = Sign::kOfOperands, .growth = Growth::kProduct, .packing = PackRule::kProduct, .rounding = Rounding::kProduct, .border = Border::kProduct, .weights = 0b11, .marks = kMultipliesWeights | kHeavy}},
    {{GemmOp::kName, 2, 3, 1, 1, 0, 0, GemmRule, GemmKernel, GemmAxis},
     {.map = GemmMap, .packing = PackRule::kProduct, .rounding = Rounding::kProduct, .weights = 0b110, .marks = kMultipliesWeights | kHeavy}},
    {{MatMulIntegerOp::kName, 2, 4, 1, 1, 0, 0, MatMulIntegerRule, MatMulIntegerKernel, MatMulIntegerAxis, kInt32},
     {.map = MatMulIntegerMap, .packing = PackRule::kProduct, .marks = kMultipliesWeights | kHeavy}},
    {{EinsumOp::kName, 1, -1, 1, 1, 0, 0, EinsumRule, EinsumKernel, EinsumAxis},
     {.map = EinsumMap, .growth = Growth::kContraction, .marks = kMultipliesWeights | kHeavy, .becomes = MatMulOp::kName}},
    {{"Det", 1, 1, 1, 1, 0, 0, DetRule, DetKernel, MapAxis},
     {.map = DetMap, .growth = Growth::kReduces, .packing = PackRule::kLastDims, .marks = kHeavy}},
    {{FusedMatMulOp::kName, 2, 2, 1, 1, 0, 0, FusedMatMulRule, FusedMatMulKernel, GemmAxis},
     {.map = MatMulMap, .marks = kMultipliesWeights, .becomes = MatMulOp::kName}},
    {{LinearOp::kName, 2, 4, 1, 1, kInternal, 0, LinearRule, LinearKernel, UnknownAxis},
     {.map = LinearMap, .packing = PackRule::kProduct, .rounding = Rounding::kProduct, .marks = kMultipliesWeights}},
    {{IntegerLinearOp::kName, 4, 8, 1, 1, kInternal, 0, IntegerLinearRule, IntegerLinearKernel, UnknownAxis, kFloat32},
     {.map = IntegerLinearMap, .packing = PackRule::kProduct, .marks = kMultipliesWeights}},
    // Convolution and pooling.
    {{ConvOp::kName, 2, 3, 1, 1, 0, 0, ConvRule, ConvKernel, ConvAxis},
     {.map = ConvMap, .border = Border::kWindow, .weights = 0b110, .marks = kMultipliesWeights | kHeavy}},
    {{ByteTableOp::kName, 2, 2, 1, 1, kInternal, 0, ByteTableRule, ByteTableKernel, UnknownAxis, TypeLike<1>},
     {.map = FirstMap, .packing = PackRule::kByteTable}},
    {{IntegerAddOp::kName, 8, 8, 1, 1, kInternal, 0, IntegerAddRule, IntegerAddKernel, UnknownAxis, TypeLike<7>},
     {.map = ElementwiseMap}},
    {{IntegerConvOp::kName, 4, 10, 1, 1, kInternal, 0, IntegerConvRule, IntegerConvKernel, UnknownAxis, TypeLikeOr<9, DType::kFloat32>},
     {.map = IntegerConvMap, .marks = kMultipliesWeights}},
    {{FusedConvOp::kName, 2, 4, 1, 1, kInternal, 0, FusedConvRule, FusedConvKernel, UnknownAxis},
     {.map = FusedConvMap, .marks = kMultipliesWeights}},
    {{DeformConvOp::kName, 3, 5, 1, 1, 0, 0, DeformConvRule, DeformConvKernel, MapAxis},
     {.map = DeformConvMap, .marks = kHeavy, .becomes = DeformColumnsOp::kName}},
    {{DeformColumnsOp::kName, 2, 3, 1, 1, kInternal, 0, DeformColumnsRule, DeformColumnsKernel, MapAxis},
     {.map = BatchOfAllMap}},
    {{ConvTransposeOp::kName, 2, 3, 1, 1, 0, 0, ConvTransposeRule, ConvTransposeKernel, ConvTransposeAxis},
     {.map = ConvTransposeMap, .weights = 0b110, .marks = kMultipliesWeights | kHeavy}},
    {{FusedConvTransposeOp::kName, 2, 3, 1, 1, kInternal, 0, FusedConvTransposeRule, FusedConvTransposeKernel, UnknownAxis},
     {.map = BatchOfFirstMap, .marks = kMultipliesWeights}},
    {{AveragePoolOp::kName, 1, 1, 1, 1, 0, 0, AveragePoolRule, AveragePoolKernel, AveragePoolAxis},
     {.map = PoolMap, .sign = Sign::kOfOperands, .border = Border::kCountedWindow, .marks = kHeavy}},
    {{MaxPoolOp::kName, 1, 1, 1, 2, 0, 0, MaxPoolRule, MaxPoolKernel, MaxPoolAxis, TypeOfEach<TypeLike<0>, kInt64>},
     {.map = PoolMap, .sign = Sign::kOfOperands, .border = Border::kLargestWindow, .marks = kHeavy}},
    {{"LpPool", 1, 1, 1, 1, 0, 0, LpPoolRule, LpPoolKernel, LpPoolAxis},
     {.map = PoolMap, .border = Border::kWindow, .marks = kHeavy}},
    {{GlobalAveragePoolOp::kName, 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalAveragePoolKernel, GlobalPoolAxis},
     {.map = GlobalPoolMap, .sign = Sign::kOfOperands, .border = Border::kMean}},
    {{GlobalMaxPoolOp::kName, 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalMaxPoolKernel, GlobalPoolAxis},
     {.map = GlobalPoolMap, .sign = Sign::kOfOperands, .border = Border::kLargest}},
    {{"GlobalLpPool", 1, 1, 1, 1, 0, 0, GlobalPoolRule, GlobalLpPoolKernel, GlobalPoolAxis},
     {.map = GlobalPoolMap}},
    // Where the rows of a padded batch end.
    {{LiveExtentOp::kName, 2, 2, 1, 1, kInternal, 0b10, LiveExtentRule, LiveExtentKernel, LiveExtentAxis, kInt32},
     {.map = BatchOfFirstMap, .sign = Sign::kNeverNegative, .positive = Positive::kAlways, .marks = kTakesSizes}},
    {{LiveFillOp::kName, 2, 2, 1, 1, kInternal, 0, LiveFillRule, LiveFillKernel, LiveFillAxis},
     {.map = LiveFillMap, .sign = Sign::kOfOperands}},
    {{LiveMaskOp::kName, 2, 2, 1, 1, kInternal, 0b10, LiveMaskRule, LiveMaskKernel, LiveMaskAxis, kFloat32},
     {.map = BatchOfFirstMap, .marks = kTakesSizes}},
    {{LiveShareOp::kName, 2, 2, 1, 1, kInternal, 0b10, LiveShareRule, LiveShareKernel, LiveShareAxis, kFloat32},
     {.map = BatchOfFirstMap, .sign = Sign::kNeverNegative, .marks = kTakesSizes}},
    {{LiveCompactOp::kName, 3, -1, 1, 1, kInternal, 0b10, LiveCompactRule, LiveCompactKernel, LiveCompactAxis},
     {.map = LiveCompactMap, .sign = Sign::kOfOperands, .marks = kTakesSizes}},
    // Recurrent layers.
    {{LstmOp::kName, 3, 8, 1, 3, 0, 0, LstmRule, LstmKernel, RecurrentAxis},
     {.map = RecurrentMap, .border = Border::kLengths, .weights = 0b1110, .marks = kMultipliesWeights | kHeavy}},
    {{GruOp::kName, 3, 6, 1, 2, 0, 0, GruRule, GruKernel, RecurrentAxis},
     {.map = RecurrentMap, .border = Border::kLengths, .weights = 0b1110, .marks = kMultipliesWeights | kHeavy}},
    {{RnnOp::kName, 3, 6, 1, 2, 0, 0, RnnRule, RnnKernel, RecurrentAxis},
     {.map = RecurrentMap, .border = Border::kLengths, .weights = 0b1110, .marks = kMultipliesWeights | kHeavy}},
    // Normalisations.
    {{SoftmaxOp::kName, 1, 1, 1, 1, 0, 0, SoftmaxRule, SoftmaxKernel, SoftmaxAxis},
     {.map = SoftmaxMap, .sign = Sign::kNeverNegative, .growth = Growth::kReduces, .packing = PackRule::kAlongAxis, .border = Border::kSoftmax, .axis = -1, .marks = kShapeOfFirst}},
    {{LogSoftmaxOp::kName, 1, 1, 1, 1, 0, 0, SoftmaxRule, LogSoftmaxKernel, SoftmaxAxis},
     {.map = SoftmaxMap, .packing = PackRule::kAlongAxis, .border = Border::kSoftmax, .axis = -1}},
    {{HardmaxOp::kName, 1, 1, 1, 1, 0, 0, SoftmaxRule, HardmaxKernel, SoftmaxAxis},
     {.map = SoftmaxMap, .sign = Sign::kNeverNegative, .packing = PackRule::kAlongAxis, .border = Border::kPick, .axis = -1, .marks = kCoarse}},
    {{LayerNormalizationOp::kName, 2, 3, 1, 3, 0, 0, LayerNormalizationRule, LayerNormalizationKernel, MapAxis, TypeOfEach<TypeLike<0>, StashTypes>},
     {.map = LastDimsNormMap, .packing = PackRule::kAlongAxis, .axis = -1, .weights = 0b110, .marks = kShapeOfFirst}},
    {{RmsNormalizationOp::kName, 2, 2, 1, 1, 0, 0, RmsNormalizationRule, RmsNormalizationKernel, MapAxis},
     {.map = LastDimsNormMap, .packing = PackRule::kAlongAxis, .axis = -1, .marks = kShapeOfFirst}},
    {{BatchNormalizationOp::kName, 5, 5, 1, 1, 0, 0, BatchNormalizationRule, BatchNormalizationKernel, MapAxis},
     {.map = BatchNormMap, .weights = 0b11110, .becomes = FusedConvOp::kName}},
    {{InstanceNormalizationOp::kName, 3, 3, 1, 1, 0, 0, InstanceNormalizationRule, InstanceNormalizationKernel, MapAxis},
     {.map = ChannelNormMap, .border = Border::kNorm}},
    {{GroupNormalizationOp::kName, 3, 3, 1, 1, 0, 0, GroupNormalizationRule, GroupNormalizationKernel, MapAxis},
     {.map = ChannelNormMap}},
    {{"LRN", 1, 1, 1, 1, 0, 0, LrnRule, LrnKernel, MapAxis},
     {.map = LocalNormMap, .marks = kHeavy}},
    {{AddLayerNormOp::kName, 3, 4, 1, 2, kInternal, 0, AddLayerNormRule, AddLayerNormKernel, MapAxis},
     {.map = LastDimsNormMap, .packing = PackRule::kAlongAxis, .axis = -1}},
    {{SkipLayerNormOp::kName, 3, 5, 1, 4, 0, 0, SkipLayerNormRule, SkipLayerNormKernel, MapAxis},
     {.map = LastDimsNormMap, .becomes = LayerNormalizationOp::kName}},
    {{SkipSimplifiedLayerNormOp::kName, 3, 4, 1, 4, 0, 0, SkipSimplifiedLayerNormRule, SkipSimplifiedLayerNormKernel, MapAxis},
     {.map = LastDimsNormMap, .becomes = RmsNormalizationOp::kName}},
};
// clang-format on

}  // namespace

absl::Span<const OpEntry> LayerRows() { return kLayerRows; }

}  // namespace reprise::ops
