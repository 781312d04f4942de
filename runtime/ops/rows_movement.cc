// Rows of the op table: shapes, random numbers, branches and loops, and ops that move elements.
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/control/branch.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/elementwise/random.h"
#include "runtime/ops/elementwise/select.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/data_sized.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/movement.h"
#include "runtime/ops/movement/non_max_suppression.h"
#include "runtime/ops/movement/rearrange.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/ops/movement/select_item.h"
#include "runtime/ops/movement/select_item_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/shape_ops.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/slice_pad.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/op_rows.h"
#include "runtime/ops/result_types.h"
#include "runtime/ops/windows/affine_grid.h"
#include "runtime/ops/windows/col2im.h"
#include "runtime/ops/windows/grid_sample.h"
#include "runtime/ops/windows/max_unpool.h"
#include "runtime/ops/windows/resize.h"
#include "runtime/ops/windows/resize_op.h"
#include "runtime/ops/windows/roi_align.h"

namespace reprise::ops {
namespace {

// clang-format off
constexpr OpEntry kMovementRows[] = {
    // Shapes.
    {{ShapeOp::kName, 1, 1, 1, 1, kShapeOnly, 0, ShapeRule, ShapeKernel, KnownAxis, kInt64},
     {.sign = Sign::kNeverNegative, .sizes = Sizes::kOfShape, .text = 0b1}},
    {{SizeOp::kName, 1, 1, 1, 1, kShapeOnly, 0, SizeRule, SizeKernel, KnownAxis, kInt64},
     {.sign = Sign::kNeverNegative, .sizes = Sizes::kOfShape, .text = 0b1}},
    {{ReshapeOp::kName, 2, 2, 1, 1, kView, 0b10, ReshapeRule, CopyKernel, ViewAxis},
     {.elements = Elements::kSame, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kView, .marks = kTakesSizes | kMovesBytes}},
    {{SqueezeOp::kName, 1, 2, 1, 1, kView, 0b10, SqueezeRule, CopyKernel, ViewAxis},
     {.elements = Elements::kSame, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kView}},
    {{UnsqueezeOp::kName, 2, 2, 1, 1, kView, 0b10, UnsqueezeRule, CopyKernel, ViewAxis},
     {.elements = Elements::kSame, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kView}},
    {{FlattenOp::kName, 1, 1, 1, 1, kView, 0, FlattenRule, CopyKernel, ViewAxis},
     {.elements = Elements::kSame, .sign = Sign::kOfOperands, .sizes = Sizes::kView}},
    {{ConstantOfShapeOp::kName, 1, 1, 1, 1, 0, 0b1, ConstantOfShapeRule, ConstantOfShapeKernel, KnownAxis, ConstantOfShapeTypes},
     {.sizes = Sizes::kFill, .marks = kTakesSizes | kLight}},
    {{RangeOp::kName, 3, 3, 1, 1, 0, 0b111, RangeRule, RangeKernel, KnownAxis},
     {.sizes = Sizes::kCount, .marks = kLight}},
    {{"EyeLike", 1, 1, 1, 1, kShapeOnly, 0, EyeLikeRule, EyeLikeKernel, KnownAxis, DTypeOrLikeTypes},
     {.growth = Growth::kKeepsPlaces}},
    // Random numbers.
    {{"RandomNormal", 0, 0, 1, 1, kNoFold, 0, RandomRule, RandomNormalKernel, UnknownAxis, RandomTypes}},
    {{"RandomUniform", 0, 0, 1, 1, kNoFold, 0, RandomRule, RandomUniformKernel, UnknownAxis, RandomTypes}},
    {{"RandomNormalLike", 1, 1, 1, 1, kShapeOnly | kNoFold, 0, RandomLikeRule, RandomNormalKernel, UnknownAxis, DTypeOrLikeTypes}},
    {{"RandomUniformLike", 1, 1, 1, 1, kShapeOnly | kNoFold, 0, RandomLikeRule, RandomUniformKernel, UnknownAxis, DTypeOrLikeTypes}},
    {{"Bernoulli", 1, 1, 1, 1, kNoFold, 0, BernoulliRule, BernoulliKernel, UnknownAxis, DTypeOrLikeTypes}},
    // The data decides how many elements these have.
    {{"NonZero", 1, 1, 1, 1, kDataDependent, 0b1, NonZeroRule, NonZeroKernel, UnknownAxis, kInt64},
     {.sign = Sign::kNeverNegative, .growth = Growth::kFindsOnes}},
    {{"Compress", 2, 2, 1, 1, kDataDependent, 0b10, CompressRule, CompressKernel, UnknownAxis},
     {.elements = Elements::kPart}},
    {{"Unique", 1, 1, 1, 4, kDataDependent, 0b1, UniqueRule, UniqueKernel, UnknownAxis, TypeOfEach<TypeLike<0>, kInt64>}},
    {{"NonMaxSuppression", 2, 5, 1, 1, kDataDependent, 0b11111, NonMaxSuppressionRule, NonMaxSuppressionKernel, UnknownAxis, kInt64},
     {.marks = kHeavy}},
    {{IfOp::kName, 1, -1, 1, -1, 0, 0b1, IfRule, IfKernel, UnknownAxis, IfTypes},
     {.marks = kBends}},
    {{LoopOp::kName, 3, -1, 0, -1, kNoFold, 0, LoopRule, LoopKernel, UnknownAxis, LoopTypes}},
    {{LoopStepOp::kName, 0, 0, 2, -1, kInternal | kNoFold, 0, LoopStepRule, LoopStepKernel, UnknownAxis, LoopStepTypes}},
    // Moving elements.
    {{SelectItemOp::kName, 2, -1, 1, 1, kInternal, 0b1, SelectItemRule, SelectItemKernel, UnknownAxis, TypeLike<1>}},
    {{TransposeOp::kName, 1, 1, 1, 1, 0, 0, TransposeRule, TransposeKernel, TransposeAxis},
     {.map = TransposeMap, .elements = Elements::kMoved, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kCopy, .packing = PackRule::kTranspose, .marks = kMovesBytes | kLight}},
    {{ConcatOp::kName, 1, -1, 1, 1, 0, 0, ConcatRule, ConcatKernel, ConcatAxis},
     {.map = ConcatMap, .elements = Elements::kJoined, .sign = Sign::kOfOperands, .sizes = Sizes::kJoin, .packing = PackRule::kAlongAxis, .marks = kStaysInPlace | kLight}},
    {{SplitOp::kName, 1, 2, 1, -1, 0, 0b10, SplitRule, SplitKernel, SplitAxis},
     {.map = SplitMap, .elements = Elements::kPart, .sign = Sign::kOfOperands, .sizes = Sizes::kCopy, .packing = PackRule::kAlongAxis, .marks = kMovesBytes | kLight}},
    {{SliceOp::kName, 3, 5, 1, 1, 0, 0b11110, SliceRule, SliceKernel, SliceAxis},
     {.map = SliceMap, .elements = Elements::kPart, .sign = Sign::kOfOperands, .sizes = Sizes::kCut, .packing = PackRule::kSlice, .marks = kMovesBytes | kLight}},
    {{ExpandOp::kName, 2, 2, 1, 1, 0, 0b10, ExpandRule, ExpandKernel, ExpandAxis},
     {.map = ExpandMap, .elements = Elements::kRepeated, .sign = Sign::kOfOperands, .positive = Positive::kOfFirst, .sizes = Sizes::kCopy, .packing = PackRule::kExpand, .marks = kStaysInPlace | kTakesSizes | kKnowsRows | kLight}},
    {{TileOp::kName, 2, 2, 1, 1, 0, 0b10, TileRule, TileKernel, TileAxis},
     {.map = TileMap, .elements = Elements::kRepeated, .sign = Sign::kOfOperands, .sizes = Sizes::kCopy, .marks = kTakesSizes | kKnowsRows | kMovesBytes | kLight}},
    {{"Pad", 2, 4, 1, 1, 0, 0b1010, PadRule, PadKernel, PadAxis},
     {.map = PadMap, .marks = kLight}},
    {{"Trilu", 1, 2, 1, 1, 0, 0, TriluRule, TriluKernel, TriluAxis},
     {.map = TriluMap, .growth = Growth::kKeepsPlaces, .choosers = 0b10, .marks = kLight}},
    {{"DepthToSpace", 1, 1, 1, 1, 0, 0, DepthToSpaceRule, DepthToSpaceKernel, PlanesAxis},
     {.map = PlanesMap, .marks = kMovesBytes}},
    {{"SpaceToDepth", 1, 1, 1, 1, 0, 0, SpaceToDepthRule, SpaceToDepthKernel, PlanesAxis},
     {.map = PlanesMap, .marks = kMovesBytes}},
    {{"ReverseSequence", 2, 2, 1, 1, 0, 0, ReverseSequenceRule, ReverseSequenceKernel, ReverseSequenceAxis},
     {.map = ReverseSequenceMap}},
    {{ResizeOp::kName, 1, 4, 1, 1, 0, 0b1100, ResizeRule, ResizeKernel, ResizeAxis},
     {.map = ResizeMap, .growth = Growth::kResizes, .marks = kTakesSizes | kKnowsRows | kLight}},
    {{"GridSample", 2, 2, 1, 1, 0, 0, GridSampleRule, GridSampleKernel, MapAxis},
     {.map = GridSampleMap}},
    {{"AffineGrid", 2, 2, 1, 1, 0, 0b10, AffineGridRule, AffineGridKernel, AffineGridAxis},
     {.map = BatchOfFirstMap}},
    {{"Col2Im", 3, 3, 1, 1, 0, 0b110, Col2ImRule, Col2ImKernel, MapAxis},
     {.map = BatchOfFirstMap}},
    {{"MaxUnpool", 2, 3, 1, 1, 0, 0b100, MaxUnpoolRule, MaxUnpoolKernel, MaxUnpoolAxis}},
    {{"RoiAlign", 3, 3, 1, 1, 0, 0, RoiAlignRule, RoiAlignKernel, MapAxis},
     {.map = RoiAlignMap, .marks = kLight}},
    // Gathering and scattering.
    {{GatherOp::kName, 2, 2, 1, 1, 0, 0, GatherRule, GatherKernel, GatherAxis},
     {.map = GatherMap, .elements = Elements::kPart, .sign = Sign::kOfOperands, .sizes = Sizes::kLookup, .packing = PackRule::kGather, .choosers = 0b10, .marks = kLooksUp | kKnowsRows | kMovesBytes | kLight}},
    {{GatherElementsOp::kName, 2, 2, 1, 1, 0, 0, GatherElementsRule, GatherElementsKernel, GatherElementsAxis},
     {.map = GatherElementsMap, .elements = Elements::kPart, .sign = Sign::kOfOperands, .growth = Growth::kKeepsPlaces, .choosers = 0b10, .marks = kLooksUp | kLight}},
    {{GatherNdOp::kName, 2, 2, 1, 1, 0, 0, GatherNDRule, GatherNDKernel, DataAxis},
     {.map = GatherNdMap, .elements = Elements::kPart, .sign = Sign::kOfOperands, .growth = Growth::kKeepsPlaces, .packing = PackRule::kPick, .choosers = 0b10, .marks = kLooksUp | kLight}},
    {{ScatterElementsOp::kName, 3, 3, 1, 1, 0, 0, ScatterElementsRule, ScatterElementsKernel, DataAxis},
     {.map = ScatterElementsMap, .growth = Growth::kKeepsPlaces, .choosers = 0b10, .marks = kLooksUp | kLight}},
    {{ScatterNdOp::kName, 3, 3, 1, 1, 0, 0, ScatterNDRule, ScatterNDKernel, DataAxis},
     {.map = ScatterNdMap, .growth = Growth::kKeepsPlaces, .choosers = 0b10, .marks = kLooksUp | kLight}},
    {{OneHotOp::kName, 3, 3, 1, 1, 0, 0b10, OneHotRule, OneHotKernel, OneHotAxis, TypeLike<2>},
     {.map = OneHotMap, .growth = Growth::kKeepsPlaces, .marks = kLooksUp | kLight}},
    {{CheckRangeOp::kName, 1, 1, 1, 1, kElementwise | kInternal, 0, SameRule<kIndices>, CheckRangeKernel, ElementwiseAxis}},
    {{EmbeddingSumOp::kName, 2, -1, 1, 1, kInternal, 0, EmbeddingSumRule, EmbeddingSumKernel, UnknownAxis},
     {.map = EmbeddingSumMap, .packing = PackRule::kEmbedding, .marks = kKnowsRows}},
};
// clang-format on

}  // namespace

absl::Span<const OpEntry> MovementRows() { return kMovementRows; }

}  // namespace reprise::ops
