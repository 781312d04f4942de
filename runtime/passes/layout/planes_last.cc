#include "runtime/passes/layout/planes_last.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
bool AreOfOneElement(const Shape& planes) {
  return std::all_of(planes.begin() + 2, planes.end(), [](int64_t size) { return size == 1; });
}

std::vector<int64_t> PermToLast(size_t rank) {
  std::vector<int64_t> perm = {0};
  for (size_t i = 2; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> PermToFirst(size_t rank) {
  std::vector<int64_t> perm = {0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  return perm;
}

int64_t AxisOfLast(int64_t axis, int64_t rank) {
  if (axis == 0) return 0;
  return axis == 1 ? rank - 1 : axis - 1;
}

ValueId WasLast(const Graph& graph, ValueId value) {
  if (!ShapeOf(graph, value).has_value() || ShapeOf(graph, value)->size() < 3) return kNone;
  const Shape& shape = *ShapeOf(graph, value);
  if (const Node* node = graph.ProducerIf(value, TransposeOp::kName); node != nullptr) {
    return node->attributes.Ints("perm") == PermToFirst(shape.size()) ? node->inputs[0] : kNone;
  }
  const Node* node = graph.ProducerIf(value, ReshapeOp::kName);
  const bool same = node != nullptr && AreOfOneElement(shape) &&
                    HasShape(graph, node->inputs[0], ops::ChannelsLast(shape));
  return same ? node->inputs[0] : kNone;
}

absl::StatusOr<ValueId> ToLast(Graph& graph, ValueId value) {
  if (const ValueId last = WasLast(graph, value); last != kNone) return last;
  const Shape shape = *ShapeOf(graph, value);
  if (AreOfOneElement(shape)) return AddReshape(graph, value, ops::ChannelsLast(shape));
  const std::vector<int64_t> perm = PermToLast(shape.size());
  if (IsWeight(graph, value)) {
    return AddWeight(graph, TransposeOp::kName, {{"perm", perm}}, {value}, graph.value(value).dtype,
                     ops::ChannelsLast(shape));
  }
  for (const NodeId user : graph.value(value).users) {
    const Node& node = graph.node(user);
    if (node.op == TransposeOp::kName && node.attributes.Ints("perm") == perm)
      return node.outputs[0];
  }
  return AddInferred(graph, TransposeOp::kName, {value}, {{"perm", perm}});
}

absl::Status ReplaceByLast(Graph& graph, ValueId first, ValueId last) {
  const Shape shape = *ShapeOf(graph, first);
  const auto turned = AreOfOneElement(shape) ? AddReshape(graph, last, shape)
                                             : AddInferred(graph, TransposeOp::kName, {last},
                                                           {{"perm", PermToFirst(shape.size())}});
  RETURN_IF_ERROR(turned.status());
  Replace(graph, first, *turned);
  return absl::OkStatus();
}

absl::Status TurnParts(Graph& graph, const Node& node) {
  const auto rank = static_cast<int64_t>(ShapeOf(graph, node.inputs[0])->size());
  const size_t parts = node.op == ConcatOp::kName ? node.inputs.size() : 1;
  std::vector<ValueId> inputs = node.inputs;
  ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(node.attributes.Int("axis", 0), rank));
  for (size_t i = 0; i < parts; ++i) {
    ASSIGN_OR_RETURN(inputs[i], ToLast(graph, inputs[i]));
  }
  Attributes attributes = node.attributes;
  attributes.Set("axis", AxisOfLast(axis, rank));
  const NodeId turned =
      graph.AddNode(node.op, std::move(inputs), attributes, node.outputs.size(), node.name);
  RETURN_IF_ERROR(InferNode(graph, turned));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    RETURN_IF_ERROR(ReplaceByLast(graph, node.outputs[i], graph.node(turned).outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace reprise
