#include <algorithm>
#include <cstring>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/select_item.h"
#include "runtime/ops/movement/select_item_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/ops/windows/resize.h"
#include "runtime/ops/windows/resize_antialias.h"
#include "runtime/ops/windows/resize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

bool OnlyFirstOutputUsed(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    const ValueId output = node.outputs[i];
    if (output != kNone && (!graph.value(output).users.empty() || graph.IsOutput(output))) {
      return false;
    }
  }
  return true;
}

bool IsTraining(const Graph& graph, const Node& node) {
  if (node.input(2) == kNone) return false;
  const std::optional<double> training = KnownScalar(graph, node.input(2));
  return !training.has_value() || *training != 0;
}

// Returns whether every step is 1, so that equal shapes mean that everything is taken.
bool TakesEverythingInOrder(const Graph& graph, const Node& slice) {
  if (slice.input(4) == kNone) return true;
  const Tensor* steps = KnownConstant(graph, slice.input(4));
  if (steps == nullptr) return false;
  const auto values = steps->ToInt64s();
  return values.ok() &&
         std::all_of(values->begin(), values->end(), [](int64_t step) { return step == 1; });
}

std::vector<int64_t> PermOf(const Node& node, size_t rank) {
  std::vector<int64_t> reversed;
  for (size_t i = rank; i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  return node.attributes.Ints("perm", std::move(reversed));
}

}  // namespace

absl::StatusOr<ValueId> ForwardRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId input = node.input(0);
  if (input == kNone) return kNone;
  if (node.op == IdentityOp::kName) return input;
  if (node.op == SelectItemOp::kName) {
    const std::optional<double> position = KnownScalar(graph, input);
    if (!position.has_value()) return kNone;
    ASSIGN_OR_RETURN(const size_t item, ops::SelectedInput(node, static_cast<int64_t>(*position)));
    return node.inputs[item];
  }
  if (node.op == DropoutOp::kName) {
    return OnlyFirstOutputUsed(graph, node) && !IsTraining(graph, node) ? input : kNone;
  }
  const ValueId output = node.outputs[0];
  const DType dtype = graph.value(output).dtype;
  if (dtype == DType::kUndefined) return kNone;
  const bool same_dtype = graph.value(input).dtype == dtype;
  if (node.op == CastLikeOp::kName && !same_dtype && !IsWeight(graph, node.input(1))) {
    const ValueId like = graph.AddConstant("", Tensor::Make(dtype, {}, [&](void* element) {
                                             std::memset(element, 0, DTypeSize(dtype));
                                           }));
    graph.SetInput(id, 1, like);
    return output;
  }
  if (!same_dtype) return kNone;
  if (node.op == CastOp::kName || node.op == CastLikeOp::kName) return input;
  if (!SameShape(graph, input, output)) return kNone;
  const bool single = node.inputs.size() == 1 && node.outputs.size() == 1;
  if (single &&
      (node.op == ConcatOp::kName || node.op == SplitOp::kName || node.op == MaxOp::kName ||
       node.op == MinOp::kName || node.op == SumOp::kName || node.op == MeanOp::kName)) {
    return input;
  }
  if (node.op == ExpandOp::kName || node.op == TileOp::kName) return input;
  if (node.op == SliceOp::kName && TakesEverythingInOrder(graph, node)) return input;
  return kNone;
}

absl::StatusOr<ValueId> ByteResizeRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != ResizeOp::kName || node.attributes.String("mode", "nearest") != "linear")
    return kNone;
  const ValueId output = node.outputs[0];
  if (graph.value(output).dtype != DType::kUInt8 || !ShapeOf(graph, output).has_value()) {
    return kNone;
  }
  std::vector<ValueId> inputs = node.inputs;
  const Attributes attributes = node.attributes;
  const std::string name = node.name;
  const float to_half = ops::RoundingOfIntegers(node);
  ASSIGN_OR_RETURN(inputs[0], AddCast(graph, inputs[0], DType::kFloat32));
  ASSIGN_OR_RETURN(const ValueId between,
                   AddInferred(graph, ResizeOp::kName, std::move(inputs), attributes, name));
  // The Cast cuts off, where exact sums would be.
  const ValueId rounding =
      graph.AddConstant("", Tensor::FloatScalar(to_half + ops::kResizeSumsAreOffBy));
  ASSIGN_OR_RETURN(const ValueId sum, AddInferred(graph, AddOp::kName, {between, rounding}));
  return AddCast(graph, sum, DType::kUInt8);
}

absl::StatusOr<ValueId> ViewRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || !row->Has(kView)) return kNone;
  const ValueId output = node.outputs[0];
  if (!ShapeOf(graph, output).has_value() || !ShapeOf(graph, node.inputs[0]).has_value()) {
    return kNone;
  }
  if (SameShape(graph, node.inputs[0], output)) return node.inputs[0];
  const Node* producer = graph.ProducerIf(node.inputs[0], ReshapeOp::kName);
  const Shape shape = *ShapeOf(graph, output);
  if (producer != nullptr) return AddReshape(graph, producer->inputs[0], shape);
  // One spelling of each Reshape, so that equal ones merge.
  const Tensor* sizes =
      node.op == ReshapeOp::kName ? KnownConstant(graph, node.inputs[1]) : nullptr;
  const bool canonical = sizes != nullptr && sizes->dtype() == DType::kInt64 &&
                         sizes->span<int64_t>() == absl::Span<const int64_t>(shape) &&
                         node.attributes.Int("allowzero", 0) == 1;
  return canonical ? kNone : AddReshape(graph, node.inputs[0], shape);
}

namespace {

// Returns whether no element moves: dims of more than one element keep their order.
bool MovesNothing(const Shape& in, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (in[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace

absl::StatusOr<ValueId> TransposeRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != TransposeOp::kName || !ShapeOf(graph, node.inputs[0]).has_value() ||
      !ShapeOf(graph, node.outputs[0]).has_value()) {
    return kNone;
  }
  const ValueId input = node.inputs[0];
  const Shape in = *ShapeOf(graph, input);
  const std::vector<int64_t> perm = PermOf(node, in.size());
  if (MovesNothing(in, perm)) {
    const Shape out = *ShapeOf(graph, node.outputs[0]);
    return AddReshape(graph, input, out);
  }
  const Node* producer = graph.ProducerIf(input, TransposeOp::kName);
  if (producer == nullptr) return kNone;
  const std::vector<int64_t> first = PermOf(*producer, in.size());
  std::vector<int64_t> both;
  for (int64_t axis : perm) both.push_back(first[axis]);
  return AddInferred(graph, TransposeOp::kName, {producer->inputs[0]}, {{"perm", std::move(both)}});
}

absl::StatusOr<ValueId> TransposedBroadcastRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != TransposeOp::kName || OnlyUser(graph, node.inputs[0]) == kNone) return kNone;
  const NodeId producer = ProducerOf(graph, node.inputs[0]);
  if (producer == kNone || !ShapeOf(graph, node.inputs[0]).has_value()) return kNone;
  const Node combined = graph.node(producer);
  const OpRow* row = FindOp(combined.op);
  if (row == nullptr || !row->Has(kElementwise) || combined.inputs.size() != 2) return kNone;
  const size_t rank = ShapeOf(graph, node.inputs[0])->size();
  const std::vector<int64_t> perm = PermOf(node, rank);
  Shape turned[2];
  for (size_t i = 0; i < 2; ++i) {
    const Shape& own = *ShapeOf(graph, combined.inputs[i]);
    Shape wide(rank - own.size(), 1);
    wide.insert(wide.end(), own.begin(), own.end());
    if (!MovesNothing(wide, perm)) return kNone;
    for (const int64_t axis : perm) turned[i].push_back(wide[axis]);
  }
  ASSIGN_OR_RETURN(const ValueId a, AddReshape(graph, combined.inputs[0], turned[0]));
  ASSIGN_OR_RETURN(const ValueId b, AddReshape(graph, combined.inputs[1], turned[1]));
  return AddInferred(graph, combined.op, {a, b}, combined.attributes, combined.name);
}

absl::StatusOr<ValueId> GatherNdRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != GatherNdOp::kName || node.attributes.Int("batch_dims", 0) != 0) return kNone;
  const Tensor* indices = KnownConstant(graph, node.inputs[1]);
  const std::optional<Shape>& data = ShapeOf(graph, node.inputs[0]);
  if (indices == nullptr || indices->dtype() != DType::kInt64 || !data.has_value() ||
      !ShapeOf(graph, node.outputs[0]).has_value()) {
    return kNone;
  }
  const int64_t depth = indices->shape().empty() ? 0 : indices->shape().back();
  if (depth == 0 || depth > static_cast<int64_t>(data->size())) return kNone;
  const absl::Span<const int64_t> addressed = absl::Span<const int64_t>(*data).first(depth);
  const absl::Span<const int64_t> elements = indices->span<int64_t>();
  if (static_cast<int64_t>(elements.size()) != NumElements(addressed) * depth) return kNone;
  Shape expected(depth, 0);
  for (size_t i = 0; i < elements.size(); i += depth) {
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = elements[i + d] < 0 ? elements[i + d] + addressed[d] : elements[i + d];
      if (index != expected[d]) return kNone;
    }
    for (int64_t d = depth; d-- > 0;) {
      if (++expected[d] < addressed[d]) break;
      expected[d] = 0;
    }
  }
  const Shape shape = *ShapeOf(graph, node.outputs[0]);
  return AddReshape(graph, node.inputs[0], shape);
}

absl::StatusOr<ValueId> ExpandRule(Graph& graph, NodeId id) {
  const OpRow* row = FindOp(graph.node(id).op);
  if (row == nullptr || !row->Has(kElementwise) || row->Has(kNoFold)) return kNone;
  if (graph.node(id).outputs.size() != 1 || graph.node(id).op == DropoutOp::kName) return kNone;
  const ValueId output = graph.node(id).outputs[0];
  std::vector<ValueId> inputs = graph.node(id).inputs;
  bool expands = false;
  Shape small;
  for (ValueId& input : inputs) {
    if (input == kNone) continue;
    if (const Node* expand = graph.ProducerIf(input, ExpandOp::kName); expand != nullptr) {
      input = expand->inputs[0];
      expands = true;
    }
    if (!ShapeOf(graph, input).has_value()) return kNone;
    ASSIGN_OR_RETURN(small, BroadcastShapes(small, *ShapeOf(graph, input)));
  }
  if (!expands || !ShapeOf(graph, output).has_value()) return kNone;
  // Their results have the shape of the first operand, whatever the second.
  if (FactsOf(graph.node(id).op).Is(kShapeOfFirst) && !HasShape(graph, inputs[0], small)) {
    return kNone;
  }
  const Shape large = *ShapeOf(graph, output);
  Attributes attributes = graph.node(id).attributes;
  const std::string op = graph.node(id).op;
  const std::string name = graph.node(id).name;
  ASSIGN_OR_RETURN(const ValueId result,
                   AddInferred(graph, op, std::move(inputs), std::move(attributes), name));
  if (HasShape(graph, result, large)) return result;
  const ValueId sizes =
      graph.AddConstant("", Tensor::Int64s(std::vector<int64_t>(large.begin(), large.end())));
  return AddInferred(graph, ExpandOp::kName, {result, sizes});
}

absl::StatusOr<ValueId> ReduceRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool reduces = FactsOf(node.op).map == ops::ReduceMap;
  if (!reduces || node.outputs.size() != 1) return kNone;
  const Node* expand = graph.ProducerIf(node.inputs[0], ExpandOp::kName);
  const Tensor* axes = node.input(1) == kNone ? nullptr : KnownConstant(graph, node.inputs[1]);
  if (expand == nullptr || axes == nullptr || axes->num_elements() == 0 ||
      !ShapeOf(graph, node.outputs[0]).has_value()) {
    return kNone;
  }
  const Shape large = *ShapeOf(graph, node.inputs[0]);
  const Shape& small = *ShapeOf(graph, expand->inputs[0]);
  Shape padded(large.size() - small.size(), 1);
  padded.insert(padded.end(), small.begin(), small.end());
  ASSIGN_OR_RETURN(const std::vector<int64_t> reduced, axes->ToInt64s());
  for (int64_t axis : reduced) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, static_cast<int64_t>(large.size())));
    if (padded[axis] != large[axis]) return kNone;
  }
  const Shape out = *ShapeOf(graph, node.outputs[0]);
  const std::string op = node.op;
  const std::string name = node.name;
  Attributes attributes = node.attributes;
  const ValueId axes_value = node.inputs[1];
  ASSIGN_OR_RETURN(const ValueId operand, AddReshape(graph, expand->inputs[0], padded));
  ASSIGN_OR_RETURN(const ValueId result,
                   AddInferred(graph, op, {operand, axes_value}, std::move(attributes), name));
  if (HasShape(graph, result, out)) return result;
  const ValueId sizes =
      graph.AddConstant("", Tensor::Int64s(std::vector<int64_t>(out.begin(), out.end())));
  return AddInferred(graph, ExpandOp::kName, {result, sizes});
}

absl::StatusOr<ValueId> SoftmaxRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != SoftmaxOp::kName && node.op != LogSoftmaxOp::kName) return kNone;
  const Node* reshape = graph.ProducerIf(node.inputs[0], ReshapeOp::kName);
  if (reshape == nullptr || !ShapeOf(graph, node.outputs[0]).has_value() ||
      !ShapeOf(graph, reshape->inputs[0]).has_value()) {
    return kNone;
  }
  const Shape out = *ShapeOf(graph, node.outputs[0]);
  const Shape& in = *ShapeOf(graph, reshape->inputs[0]);
  const int64_t axis = node.attributes.Int("axis", -1);
  const bool last = axis == -1 || axis == static_cast<int64_t>(out.size()) - 1;
  if (!last || in.empty() || out.empty() || in.back() != out.back()) return kNone;
  const std::string op = node.op;
  const std::string name = node.name;
  ASSIGN_OR_RETURN(const ValueId result,
                   AddInferred(graph, op, {reshape->inputs[0]}, {{"axis", int64_t{-1}}}, name));
  return AddReshape(graph, result, out);
}

}  // namespace reprise
