// Masks of positions after strides, made of the sum of a client's mask.
//
// Speech encoders count the samples that a mask has, and compute how many positions the layers
// leave of them. Exports write a one at the last of these and add up from the end:
//
//   n = CumSum(mask)[:, -1]; p = positions(n) - 1
//   ScatterND(zeros [batch, positions], [[row, p[row]] ...], ones), turned around, CumSum,
//   turned around
//
// In the live form `n` is a sum, and the mask holds up to and including `p`. A negative `p` counts
// from the end of the row, as in ScatterND.
#include <limits>

#include "runtime/graph/elements.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/live/live_rewrite.h"

namespace reprise {
namespace {

constexpr int kMostSteps = 16;  // that a value is followed back

// Returns the operand that `value` has its elements from, each of them as often as it may be, or
// kNone.
ValueId SpreadFrom(const Graph& graph, ValueId value) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  const bool spreads = node.op == UnsqueezeOp::kName || node.op == SqueezeOp::kName ||
                       node.op == ReshapeOp::kName || node.op == ExpandOp::kName ||
                       node.op == CastOp::kName;
  return spreads ? node.inputs[0] : kNone;
}

// Returns whether every element of `value` is `number`.
bool IsAll(const Graph& graph, ValueId value, double number) {
  const auto is_number = [number](double one) { return one == number; };
  for (int step = 0; step < kMostSteps && value != kNone; ++step) {
    if (const Tensor* known = KnownConstant(graph, value); known != nullptr) {
      return AllElements(*known, is_number);
    }
    if (const Node* filled = graph.ProducerIf(value, ConstantOfShapeOp::kName)) {
      const Tensor* with = filled->attributes.Get<Tensor>("value");
      return with == nullptr ? number == 0 : AllElements(*with, is_number);
    }
    value = SpreadFrom(graph, value);
  }
  return false;
}

// Returns the type of such a value.
DType TypeOfFilled(const Graph& graph, ValueId value) {
  for (int step = 0; step < kMostSteps && value != kNone; ++step) {
    if (const Tensor* known = KnownConstant(graph, value); known != nullptr) return known->dtype();
    if (const Node* filled = graph.ProducerIf(value, ConstantOfShapeOp::kName)) {
      const Tensor* with = filled->attributes.Get<Tensor>("value");
      return with == nullptr ? DType::kFloat32 : with->dtype();
    }
    if (const Node* cast = graph.ProducerIf(value, CastOp::kName)) {
      const auto to = ops::DTypeFromOnnx(cast->attributes.Int("to", 0));
      return to.ok() ? *to : DType::kUndefined;
    }
    value = SpreadFrom(graph, value);
  }
  return DType::kUndefined;
}

// Returns the integers of an operand; nothing where they are not known.
std::vector<int64_t> KnownInts(const Graph& graph, ValueId value) {
  const Tensor* known = value == kNone ? nullptr : KnownConstant(graph, value);
  const auto ints = known == nullptr ? absl::UnknownError("") : known->ToInt64s();
  return ints.ok() ? *ints : std::vector<int64_t>();
}

bool IsDim(const std::vector<int64_t>& axes, int64_t dim, int64_t rank) {
  return axes.size() == 1 && (axes[0] == dim || axes[0] == dim - rank);
}

}  // namespace

const Node* LiveRewrite::SumAlong(ValueId value, int64_t dim) const {
  const Node* sum = graph_.ProducerIf(value, CumSumOp::kName);
  if (sum == nullptr) return nullptr;
  const CumSumOp op = CumSumOp::From(*sum);
  const std::vector<int64_t> axis = KnownInts(graph_, sum->input(CumSumOp::kAxis));
  const bool along = !op.exclusive && !op.reverse && IsDim(axis, dim, extents_.RankOf(value));
  return along ? sum : nullptr;
}

void LiveRewrite::VisitLast(NodeId id) {
  const Node node = graph_.node(id);
  const ValueId sums = node.inputs[GatherOp::kX], place = node.inputs[GatherOp::kPlaces];
  const int64_t rank = extents_.RankOf(sums);
  const int64_t axis = GatherOp::From(node).axis;
  const int64_t dim = axis < 0 ? axis + rank : axis;
  if (extents_.SizesOf(place) == nullptr || extents_.RankOf(place) > 1) return;
  if (KnownInts(graph_, place) != std::vector<int64_t>{-1}) return;
  const Node* sum = SumAlong(sums, dim);
  if (sum == nullptr) return TakeLast(id, sums, dim, extents_.RankOf(place) == 1);
  const ValueId x = sum->inputs[CumSumOp::kX];
  const auto live = extents_.At(x, dim);
  if (!live.has_value() || !CanFill(x, *live)) return;
  ReplaceOutput(id, Add(ReduceSumOp::kName, {Filled(x, *live, 0), Ints({dim})},
                        {{"keepdims", extents_.RankOf(place)}}));
}

ValueId LiveRewrite::TurnedAround(ValueId value) const {
  const Node* slice = graph_.ProducerIf(value, SliceOp::kName);
  if (slice == nullptr || extents_.RankOf(value) != 2) return kNone;
  const auto ints = [&](size_t i) { return KnownInts(graph_, slice->input(i)); };
  const std::vector<int64_t> last = {-1}, ends = ints(SliceOp::kEnds);
  const bool turns = ints(SliceOp::kStarts) == last && ints(SliceOp::kSteps) == last &&
                     ends.size() == 1 && ends[0] <= -std::numeric_limits<int64_t>::max() &&
                     IsDim(ints(SliceOp::kAxes), 1, 2);
  return turns ? slice->inputs[SliceOp::kX] : kNone;
}

std::optional<Size> LiveRewrite::LineOf(ValueId value) const {
  const SizeList* sizes = extents_.SizesOf(value);
  if (sizes == nullptr) return std::nullopt;
  Size line = 1;
  for (const Size size : *sizes) {
    if (size.Same(1)) continue;
    if (!line.Same(1)) return std::nullopt;
    line = size;
  }
  return line;
}

bool LiveRewrite::CountsRows(ValueId value, Size rows) const {
  for (int step = 0; step < kMostSteps && value != kNone; ++step) {
    const std::optional<Size> line = LineOf(value);
    if (!line.has_value() || !line->Same(rows)) return false;
    if (const Node* range = graph_.ProducerIf(value, RangeOp::kName)) {
      return IsScalar(graph_, range->inputs[RangeOp::kStart], 0) &&
             IsScalar(graph_, range->inputs[RangeOp::kDelta], 1);
    }
    value = SpreadFrom(graph_, value);
  }
  return false;
}

void LiveRewrite::VisitSlice(NodeId id) {
  const Node& node = graph_.node(id);
  const auto ints = [&](size_t i) { return KnownInts(graph_, node.input(i)); };
  const std::vector<int64_t> ends = ints(SliceOp::kEnds), axes = ints(SliceOp::kAxes);
  const std::vector<int64_t> steps = ints(SliceOp::kSteps);
  const bool by_one = node.input(SliceOp::kSteps) == kNone || steps == std::vector<int64_t>{1};
  const bool takes_last = ints(SliceOp::kStarts) == std::vector<int64_t>{-1} && by_one &&
                          ends.size() == 1 && axes.size() == 1 &&
                          ends[0] >= std::numeric_limits<int32_t>::max();
  if (!takes_last) return VisitReversed(id);
  const int64_t rank = extents_.RankOf(node.inputs[0]);
  TakeLast(id, node.inputs[0], axes[0] < 0 ? axes[0] + rank : axes[0], /*keepdims=*/true);
}

void LiveRewrite::VisitReversed(NodeId id) {
  const ValueId output = graph_.node(id).outputs[0];
  const ValueId summed = TurnedAround(output);
  const Node* sum = summed == kNone ? nullptr : SumAlong(summed, 1);
  const ValueId marked = sum == nullptr ? kNone : TurnedAround(sum->inputs[CumSumOp::kX]);
  const Node* scatter = marked == kNone ? nullptr : graph_.ProducerIf(marked, ScatterNdOp::kName);
  if (scatter == nullptr || ScatterNdOp::From(*scatter).reduction != "none") return;
  const ValueId zeros = scatter->inputs[ScatterNdOp::kX];
  const ValueId places = scatter->inputs[ScatterNdOp::kPlaces];
  const SizeList* sizes = extents_.SizesOf(zeros);
  const auto live = extents_.At(zeros, 1);
  const Node* columns = graph_.ProducerIf(places, ConcatOp::kName);
  if (sizes == nullptr || sizes->size() != 2 || !live.has_value() || columns == nullptr ||
      columns->inputs.size() != 2 || extents_.RankOf(places) != 2 ||
      !IsDim({ConcatOp::From(*columns).axis}, 1, 2) || !HasRowsOfBatch(zeros) ||
      !IsAll(graph_, zeros, 0) || !IsAll(graph_, scatter->inputs[ScatterNdOp::kUpdates], 1)) {
    return;
  }
  const Size rows = (*sizes)[0];
  const SizeList* of_last = extents_.SizesOf(columns->inputs[1]);
  const bool one_a_row = of_last != nullptr && of_last->size() == 2 && (*of_last)[0].Same(rows) &&
                         (*of_last)[1].Same(1) && CountsRows(columns->inputs[0], rows);
  const DType dtype = TypeOfFilled(graph_, zeros);
  if (!one_a_row || dtype == DType::kUndefined) return;
  ValueId last = columns->inputs[1];
  for (ValueId from = SpreadFrom(graph_, last); from != kNone; from = SpreadFrom(graph_, from)) {
    const std::optional<Size> line = LineOf(from);
    if (!line.has_value() || !line->Same(rows)) break;
    last = from;
  }
  const auto cast = [&](ValueId value, DType to) {
    return Add(CastOp::kName, {value}, {{"to", ops::OnnxNumber(to)}});
  };
  const ValueId zero = graph_.AddConstant("", Tensor::Int64Scalar(0));
  const ValueId one = graph_.AddConstant("", Tensor::Int64Scalar(1));
  const ValueId at = cast(Add(ReshapeOp::kName, {last, Ints({-1})}), DType::kInt64);
  const ValueId own_end = cast(ExtentOf(live->extent, zeros, 1), DType::kInt64);
  const ValueId from_start =
      Add(WhereOp::kName, {Add(LessOp::kName, {at, zero}), Add(AddOp::kName, {at, own_end}), at});
  const ValueId count = cast(Add(AddOp::kName, {from_start, one}), DType::kInt32);
  const ValueId hidden =
      Add(LiveMaskOp::kName, {count, SizeOf(zeros, 1)}, {{"rank", int64_t{2}}, {"value", -1.0F}});
  const ValueId shown = Add(AddOp::kName, {hidden, graph_.AddConstant("", Tensor::FloatScalar(1))});
  ReplaceOutput(id, cast(shown, dtype));
}

}  // namespace reprise
