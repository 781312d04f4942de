#include "runtime/passes/layout/plane_nodes.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/ops/windows/pool_op.h"
#include "runtime/ops/windows/windows.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/layout/planes_last.h"

namespace reprise {
namespace {

// Returns the shape of a scale as planes of one element, [batch or 1, channels, 1...] or without
// the batch; nullopt: it is no such scale.
std::optional<Shape> ScaleOf(const Graph& graph, ValueId value, const Shape& planes) {
  Shape scale(planes.size(), 1);
  scale[1] = planes[1];
  if (HasShape(graph, value, scale) ||
      HasShape(graph, value, absl::MakeConstSpan(scale).subspan(1))) {
    return scale;
  }
  scale[0] = planes[0];
  return HasShape(graph, value, scale) ? std::optional(scale) : std::nullopt;
}

bool IsElementwise(const Graph& graph, const Node& node) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || !row->Has(kElementwise) || node.outputs.size() != 1 ||
      !IsPlanes(graph, node.outputs[0])) {
    return false;
  }
  const Shape& shape = *ShapeOf(graph, node.outputs[0]);
  bool planes = false;
  for (const ValueId input : node.inputs) {
    if (input == kNone) continue;
    if (!ShapeOf(graph, input).has_value()) return false;
    if (HasOneElement(graph, input)) continue;
    if (!IsFloat32(graph, input)) return false;
    const bool same = HasShape(graph, input, shape) && !IsWeight(graph, input);
    planes = planes || same;
    if (same) continue;
    if (!ScaleOf(graph, input, shape).has_value()) return false;
  }
  return planes;
}

// Returns whether the node averages whole planes, which then stay as planes of one element.
bool IsAverage(const Graph& graph, const Node& node) {
  if (!IsPlanes(graph, node.input(0))) return false;
  if (node.op == GlobalAveragePoolOp::kName) return true;
  if (node.op != ReduceMeanOp::kName || !ReduceMeanOp::From(node.attributes).keepdims) return false;
  const auto rank = static_cast<int64_t>(ShapeOf(graph, node.inputs[0])->size());
  std::vector<int64_t> axes = node.attributes.Ints("axes");
  if (node.input(1) != kNone) {
    const Tensor* known = KnownConstant(graph, node.inputs[1]);
    if (known == nullptr || !known->ToInt64s().ok()) return false;
    axes = *known->ToInt64s();
  }
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  absl::c_sort(axes);
  std::vector<int64_t> spatial;
  for (int64_t axis = 2; axis < rank; ++axis) spatial.push_back(axis);
  return axes == spatial;
}

// Returns whether it is the largest or the average of windows.
bool IsPool(const Graph& graph, const Node& node) {
  return (node.op == MaxPoolOp::kName || node.op == AveragePoolOp::kName) &&
         node.output(1) == kNone && IsPlanes(graph, node.input(0)) &&
         IsPlanes(graph, node.outputs[0]) &&
         ops::WindowsOf(node, *ShapeOf(graph, node.inputs[0])).ok();
}

bool IsParts(const Graph& graph, const Node& node) {
  if (node.op != ConcatOp::kName && node.op != SplitOp::kName) return false;
  const auto planes = [&](ValueId value) { return value == kNone || IsPlanes(graph, value); };
  if (!IsPlanes(graph, node.input(0)) || !absl::c_all_of(node.outputs, planes)) return false;
  return node.op == SplitOp::kName || absl::c_all_of(node.inputs, planes);
}

// Other dims after the same channels.
bool IsReshape(const Graph& graph, const Node& node) {
  if (node.op != ReshapeOp::kName || !IsPlanes(graph, node.input(0)) ||
      !IsPlanes(graph, node.outputs[0])) {
    return false;
  }
  const Shape &from = *ShapeOf(graph, node.inputs[0]), &to = *ShapeOf(graph, node.outputs[0]);
  return from[0] == to[0] && from[1] == to[1];
}

// Rows of planes end within their own dims.
bool IsFill(const Graph& graph, const Node& node) {
  return node.op == LiveFillOp::kName && IsPlanes(graph, node.input(0));
}

absl::Status Finish(Graph& graph, const Node& node, absl::string_view op,
                    std::vector<ValueId> inputs, Attributes attributes) {
  ASSIGN_OR_RETURN(const ValueId last,
                   AddInferred(graph, op, std::move(inputs), std::move(attributes), node.name));
  return ReplaceByLast(graph, node.outputs[0], last);
}

// Returns whether the convolution is a product: windows are single elements, and it does not matter
// that a product applies its activation before it adds the residual, a convolution after it.
bool IsProduct(const Graph& graph, const Node& node) {
  const std::string activation = FusedConvOp::From(node.attributes).activation;
  return FusedConvOp::From(node.attributes).group == 1 && IsOfElements(graph, node) &&
         ops::CheckActivation(activation).ok() &&
         (node.input(FusedConvOp::kResidual) == kNone || activation == "none");
}

absl::Status TurnProduct(Graph& graph, const Node& node, std::vector<ValueId> inputs) {
  const Shape weight = *ShapeOf(graph, inputs[1]);
  ASSIGN_OR_RETURN(const ValueId maps, AddReshape(graph, inputs[1], Shape{weight[0], weight[1]}));
  ASSIGN_OR_RETURN(inputs[1],
                   AddWeight(graph, TransposeOp::kName, {{"perm", std::vector<int64_t>{1, 0}}},
                             {maps}, DType::kFloat32, Shape{weight[1], weight[0]}));
  Attributes attributes;
  if (const std::string activation = FusedConvOp::From(node.attributes).activation;
      activation != "none") {
    attributes.Set("activation", activation);
  }
  return Finish(graph, node, LinearOp::kName, std::move(inputs), std::move(attributes));
}

// Pools one dim after the other: here the windows of `w` along dim `d` of x, seen as [before, size,
// after]. The dims after `d` together are a row of a plane then.
absl::StatusOr<ValueId> PoolAlong(Graph& graph, const Node& node, ValueId x, const ops::Windows& w,
                                  size_t d) {
  const Shape shape = *ShapeOf(graph, x);
  const auto at = shape.begin() + 1 + static_cast<ptrdiff_t>(d);
  if (w.kernel[d] == 1 && w.strides[d] == 1 && w.pad_begin[d] == 0 && w.pad_end[d] == 0) return x;
  const int64_t before = NumElements(Shape(shape.begin(), at));
  const int64_t after = NumElements(Shape(at + 1, shape.end()));
  Attributes attributes = node.attributes;
  attributes.Set("auto_pad", std::string("NOTSET"));
  attributes.Set("kernel_shape", std::vector<int64_t>{w.kernel[d], 1});
  attributes.Set("strides", std::vector<int64_t>{w.strides[d], 1});
  attributes.Set("dilations", std::vector<int64_t>{w.dilations[d], 1});
  attributes.Set("pads", std::vector<int64_t>{w.pad_begin[d], 0, w.pad_end[d], 0});
  ASSIGN_OR_RETURN(const ValueId planes, AddReshape(graph, x, Shape{before, 1, *at, after}));
  ASSIGN_OR_RETURN(const ValueId pooled,
                   AddInferred(graph, node.op, {planes}, std::move(attributes), node.name));
  Shape result = shape;
  result[d + 1] = w.out[d];
  return AddReshape(graph, pooled, result);
}

absl::Status TurnFloatConv(Graph& graph, const Node& node, bool to_last) {
  std::vector<ValueId> inputs = node.inputs;
  if (to_last) {
    Attributes attributes = node.attributes;
    attributes.Set("layout", std::string("to_last"));
    return Finish(graph, node, FusedConvOp::kName, std::move(inputs), std::move(attributes));
  }
  ASSIGN_OR_RETURN(inputs[0], ToLast(graph, inputs[0]));
  if (node.input(FusedConvOp::kResidual) != kNone) {
    ASSIGN_OR_RETURN(inputs[FusedConvOp::kResidual], ToLast(graph, inputs[FusedConvOp::kResidual]));
  }
  const bool transposed = absl::EndsWith(node.op, ConvTransposeOp::kName);
  if (!transposed && IsProduct(graph, node)) return TurnProduct(graph, node, std::move(inputs));
  Attributes attributes = node.attributes;
  attributes.Set("layout", std::string("last"));
  return Finish(graph, node, transposed ? FusedConvTransposeOp::kName : FusedConvOp::kName,
                std::move(inputs), std::move(attributes));
}

absl::Status TurnElementwise(Graph& graph, const Node& node) {
  std::vector<ValueId> inputs = node.inputs;
  const Shape shape = *ShapeOf(graph, node.outputs[0]);
  for (ValueId& input : inputs) {
    if (input == kNone || HasOneElement(graph, input)) continue;
    if (const std::optional<Shape> scale = ScaleOf(graph, input, shape)) {
      ASSIGN_OR_RETURN(input, AddReshape(graph, input, *scale));
    }
    ASSIGN_OR_RETURN(input, ToLast(graph, input));
  }
  return Finish(graph, node, node.op, std::move(inputs), node.attributes);
}

absl::Status TurnAverage(Graph& graph, const Node& node) {
  ASSIGN_OR_RETURN(const ValueId x, ToLast(graph, node.inputs[0]));
  std::vector<int64_t> axes;
  for (size_t d = 1; d + 1 < ShapeOf(graph, x)->size(); ++d) {
    axes.push_back(static_cast<int64_t>(d));
  }
  const ValueId dims = graph.AddConstant("", Tensor::Int64s(axes));
  return Finish(graph, node, ReduceMeanOp::kName, {x, dims}, {});
}

absl::Status TurnPool(Graph& graph, const Node& node) {
  ASSIGN_OR_RETURN(const ops::Windows windows,
                   ops::WindowsOf(node, *ShapeOf(graph, node.inputs[0])));
  ASSIGN_OR_RETURN(ValueId x, ToLast(graph, node.inputs[0]));
  for (size_t d = 0; d < windows.kernel.size(); ++d) {
    ASSIGN_OR_RETURN(x, PoolAlong(graph, node, x, windows, d));
  }
  return ReplaceByLast(graph, node.outputs[0], x);
}

absl::Status TurnReshape(Graph& graph, const Node& node) {
  ASSIGN_OR_RETURN(const ValueId x, ToLast(graph, node.inputs[0]));
  const Shape last = ops::ChannelsLast(*ShapeOf(graph, node.outputs[0]));
  ASSIGN_OR_RETURN(const ValueId y, AddReshape(graph, x, last));
  return ReplaceByLast(graph, node.outputs[0], y);
}

absl::Status TurnFill(Graph& graph, const Node& node) {
  const auto rank = static_cast<int64_t>(ShapeOf(graph, node.inputs[0])->size());
  ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(node.attributes.Int("axis", -1), rank));
  ASSIGN_OR_RETURN(const ValueId x, ToLast(graph, node.inputs[0]));
  Attributes attributes = node.attributes;
  attributes.Set("axis", AxisOfLast(axis, rank));
  return Finish(graph, node, node.op, {x, node.inputs[1]}, std::move(attributes));
}

}  // namespace

bool IsPlanes(const Graph& graph, ValueId value) {
  if (value == kNone || !IsFloat32(graph, value)) return false;
  const Shape& shape = *ShapeOf(graph, value);
  return shape.size() >= 3 && shape.size() <= 4 && NumElements(shape) > 0;
}

std::optional<PlaneNode> PlaneNodeOf(const Graph& graph, const Node& node) {
  if (const std::optional<PlaneCosts> costs = PlaneCostsOf(graph, node)) {
    return PlaneNode{PlaneNode::Kind::kConv, *costs};
  }
  const auto of = [](PlaneNode::Kind kind) { return PlaneNode{kind, {}}; };
  if (IsElementwise(graph, node)) return of(PlaneNode::Kind::kElementwise);
  if (IsAverage(graph, node)) return of(PlaneNode::Kind::kAverage);
  if (IsPool(graph, node)) return of(PlaneNode::Kind::kPool);
  if (IsParts(graph, node)) return of(PlaneNode::Kind::kParts);
  if (IsReshape(graph, node)) return of(PlaneNode::Kind::kReshape);
  if (IsFill(graph, node)) return of(PlaneNode::Kind::kFill);
  return std::nullopt;
}

absl::Status TurnPlaneNode(Graph& graph, const Node& node, const PlaneNode& what) {
  switch (what.kind) {
    case PlaneNode::Kind::kConv:
      return TurnFloatConv(graph, node, what.costs.to_last);
    case PlaneNode::Kind::kElementwise:
      return TurnElementwise(graph, node);
    case PlaneNode::Kind::kAverage:
      return TurnAverage(graph, node);
    case PlaneNode::Kind::kPool:
      return TurnPool(graph, node);
    case PlaneNode::Kind::kParts:
      return TurnParts(graph, node);
    case PlaneNode::Kind::kReshape:
      return TurnReshape(graph, node);
    case PlaneNode::Kind::kFill:
      return TurnFill(graph, node);
  }
  return absl::OkStatus();
}

}  // namespace reprise
