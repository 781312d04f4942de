// Convolutions of bytes take and give planes with their channels last (NHWC), where
// a window's channels lie side by side and are a row of a product. So do sums,
// pools, functions, parts and samples of bytes after them. The Transposes between
// layouts move to where floats begin, and pairs that undo each other go
// (canonicalize).
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/quantized/byte_op.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/windows/pool_op.h"
#include "runtime/ops/windows/resize.h"
#include "runtime/ops/windows/resize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/layout/layout_passes.h"
#include "runtime/passes/layout/planes_last.h"
#include "runtime/passes/quantized/byte_scale.h"

namespace reprise {
namespace {

// Planes of so few channels are read where they are: there is little to have side by side.
constexpr int64_t kFewChannels = 4;

absl::StatusOr<bool> TurnIntegerConv(Graph& graph, const Node& node) {
  if (node.op != IntegerConvOp::kName || IntegerConvOp::From(node.attributes).layout != "first" ||
      !IsParameter(graph, node.inputs[1])) {
    return false;
  }
  const Shape shape = *ShapeOf(graph, node.inputs[0]);
  if (shape.size() > kMostPlaneDims) return false;
  std::vector<ValueId> inputs = node.inputs;
  Attributes attributes = node.attributes;
  const bool few = shape[1] <= kFewChannels && WasLast(graph, inputs[0]) == kNone;
  attributes.Set("layout", std::string(few ? "to_last" : "last"));
  if (!few) {
    ASSIGN_OR_RETURN(inputs[0], ToLast(graph, inputs[0]));
  }
  constexpr size_t kResidual = IntegerConvOp::kResidual;
  if (node.input(kResidual) != kNone) {
    ASSIGN_OR_RETURN(inputs[kResidual], ToLast(graph, inputs[kResidual]));
  }
  ASSIGN_OR_RETURN(const ValueId last, AddInferred(graph, node.op, std::move(inputs),
                                                   std::move(attributes), node.name));
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

absl::StatusOr<bool> TurnAdd(Graph& graph, const Node& node) {
  if (node.op != IntegerAddOp::kName ||
      (WasLast(graph, node.inputs[0]) == kNone && WasLast(graph, node.inputs[1]) == kNone)) {
    return false;
  }
  std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(inputs[i], ToLast(graph, inputs[i]));
  }
  ASSIGN_OR_RETURN(const ValueId last,
                   AddInferred(graph, node.op, std::move(inputs), node.attributes, node.name));
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

// Turns a MaxPool over bytes, or over floats dequantised from bytes: the bytes are pooled, and
// channels become one more dim of the windows.
absl::StatusOr<bool> TurnMaxPool(Graph& graph, const Node& node) {
  if (node.op != MaxPoolOp::kName || node.output(1) != kNone) return false;
  ValueId planes = node.inputs[0];
  const bool of_floats = Dequantised(graph, node.inputs[0], planes).has_value();
  if (!ops::IsByte(graph.value(planes).dtype) || !ShapeOf(graph, planes).has_value()) return false;
  ValueId bytes = WasLast(graph, planes);
  std::vector<ValueId> dequantize;
  if (of_floats) {
    const Node& from = *graph.ProducerIf(node.inputs[0], DequantizeLinearOp::kName);
    if (bytes == kNone || !KeepsOrder(graph, *Dequantised(graph, node.inputs[0], planes))) {
      return false;
    }
    dequantize = from.inputs;
  } else if (bytes == kNone) {
    if (ShapeOf(graph, planes)->size() != kMostPlaneDims) return false;
    ASSIGN_OR_RETURN(bytes, ToLast(graph, planes));
  }
  Shape shape = *ShapeOf(graph, bytes);
  shape.insert(shape.begin() + 1, 1);
  Attributes attributes = node.attributes;
  for (const char* const name : {"kernel_shape", "strides", "dilations"}) {
    std::vector<int64_t> sizes = attributes.Ints(name);
    if (sizes.empty()) continue;
    sizes.push_back(1);
    attributes.Set(name, std::move(sizes));
  }
  if (std::vector<int64_t> pads = attributes.Ints("pads"); !pads.empty()) {
    pads.insert(pads.begin() + static_cast<int64_t>(pads.size() / 2), 0);
    pads.push_back(0);
    attributes.Set("pads", std::move(pads));
  }
  ASSIGN_OR_RETURN(ValueId pooled, AddReshape(graph, bytes, shape));
  ASSIGN_OR_RETURN(pooled, AddInferred(graph, MaxPoolOp::kName, {pooled}, attributes, node.name));
  Shape last = *ShapeOf(graph, pooled);
  last.erase(last.begin() + 1);
  ASSIGN_OR_RETURN(pooled, AddReshape(graph, pooled, last));
  if (!of_floats) {
    RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], pooled));
    return true;
  }
  ASSIGN_OR_RETURN(dequantize[0], AddInferred(graph, TransposeOp::kName, {pooled},
                                              {{"perm", PermToFirst(last.size())}}));
  ASSIGN_OR_RETURN(const ValueId floats,
                   AddInferred(graph, DequantizeLinearOp::kName, std::move(dequantize)));
  Replace(graph, node.outputs[0], floats);
  return true;
}

absl::StatusOr<bool> TurnTable(Graph& graph, const Node& node) {
  if (node.op != ByteTableOp::kName) return false;
  const ValueId x = WasLast(graph, node.inputs[0]);
  if (x == kNone) return false;
  ASSIGN_OR_RETURN(const ValueId last,
                   AddInferred(graph, node.op, {x, node.inputs[1]}, node.attributes, node.name));
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

// Concat and Split along one axis.
absl::StatusOr<bool> TurnPartsOfBytes(Graph& graph, const Node& node) {
  const bool joins = node.op == ConcatOp::kName;
  if ((!joins && node.op != SplitOp::kName) || !ops::IsByte(graph.value(node.inputs[0]).dtype) ||
      !ShapeOf(graph, node.inputs[0]).has_value()) {
    return false;
  }
  const size_t parts = joins ? node.inputs.size() : 1;
  bool was_last = false;
  for (size_t i = 0; i < parts; ++i) was_last |= WasLast(graph, node.inputs[i]) != kNone;
  if (!was_last) return false;
  RETURN_IF_ERROR(TurnParts(graph, node));
  return true;
}

// Slice whose axes are known.
absl::StatusOr<bool> TurnSlice(Graph& graph, const Node& node) {
  if (node.op != SliceOp::kName || !ops::IsByte(graph.value(node.inputs[0]).dtype)) return false;
  const ValueId x = WasLast(graph, node.inputs[0]);
  const Tensor* axes = node.input(3) == kNone ? nullptr : KnownConstant(graph, node.inputs[3]);
  if (x == kNone || axes == nullptr) return false;
  const auto rank = static_cast<int64_t>(ShapeOf(graph, x)->size());
  ASSIGN_OR_RETURN(std::vector<int64_t> turned, axes->ToInt64s());
  for (int64_t& axis : turned) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
    axis = AxisOfLast(axis, rank);
  }
  Tensor positions = Tensor::FromVector<int64_t>(DType::kInt64, axes->shape(), turned);
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = x;
  // The bounds keep their type, the type of the axes.
  if (axes->dtype() != DType::kInt64) return false;
  inputs[3] = graph.AddConstant("", std::move(positions));
  ASSIGN_OR_RETURN(const ValueId last,
                   AddInferred(graph, node.op, std::move(inputs), node.attributes, node.name));
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

// Resize to elements that each are one of x: rows of these, then columns, are looked up.
absl::StatusOr<bool> TurnResize(Graph& graph, const Node& node) {
  if (node.op != ResizeOp::kName || !ops::IsByte(graph.value(node.inputs[0]).dtype)) return false;
  ValueId last = WasLast(graph, node.inputs[0]);
  if (last == kNone) return false;
  std::vector<double> factors[2];  // scales, sizes
  for (size_t i : {0, 1}) {
    if (node.input(i + 2) == kNone) continue;
    const Tensor* known = KnownConstant(graph, node.inputs[i + 2]);
    if (known == nullptr) return false;
    factors[i] = known->ToDoubles();
  }
  const Shape x = *ShapeOf(graph, node.inputs[0]);
  const auto taps = ops::ResizeTapsOf(node, x, factors[0], factors[1]);
  if (!taps.ok() || taps->size() != x.size()) return false;
  std::vector<std::vector<int64_t>> places(x.size());
  for (size_t dim = 0; dim < x.size(); ++dim) {
    for (size_t i = 0; i < (*taps)[dim].size(); ++i) {
      const absl::Span<const ops::ResizeTap> of = (*taps)[dim][i];
      if (of.size() != 1 || of[0].weight != 1 || dim < 2) return false;
      places[dim].push_back(of[0].at);
    }
  }
  for (size_t dim = 2; dim < x.size(); ++dim) {
    if (places[dim].empty()) continue;
    const ValueId indices = graph.AddConstant("", Tensor::Int64s(places[dim]));
    ASSIGN_OR_RETURN(last, AddInferred(graph, GatherOp::kName, {last, indices},
                                       {{"axis", static_cast<int64_t>(dim) - 1}}));
  }
  RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[0], last));
  return true;
}

absl::StatusOr<bool> ChannelsLastAt(Graph& graph, NodeId id) {
  bool changed = false;
  for (const auto turn : {TurnIntegerConv, TurnAdd, TurnMaxPool, TurnTable, TurnPartsOfBytes,
                          TurnSlice, TurnResize}) {
    if (graph.node(id).removed) break;
    const Node node = graph.node(id);  // Adding nodes moves the others.
    ASSIGN_OR_RETURN(const bool turned, turn(graph, node));
    changed |= turned;
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> ChannelsLast() { return PassOfNodes("channels_last", ChannelsLastAt); }

}  // namespace reprise
