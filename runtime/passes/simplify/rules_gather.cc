
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// Returns the length of rows, several of equal length laid end to end, where `value` says where
// each of them begins: 0, length, 2 * length, ...; nullopt where `value` is something else.
std::optional<int64_t> LengthOfRows(const Graph& graph, ValueId value) {
  const Tensor* starts = KnownConstant(graph, value);
  if (starts == nullptr || starts->dtype() != DType::kInt64 || starts->shape().size() != 1 ||
      starts->num_elements() < 2) {
    return std::nullopt;
  }
  const absl::Span<const int64_t> begins = starts->span<int64_t>();
  for (size_t row = 0; row < begins.size(); ++row) {
    if (begins[1] <= 0 || begins[row] != static_cast<int64_t>(row) * begins[1]) return std::nullopt;
  }
  return begins[1];
}

// Returns whether every element is an index below `size`, whatever the inputs hold: an ArgMax over
// `size`.
bool ArePlaces(const Graph& graph, ValueId value, int64_t size) {
  while (true) {
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return false;
    const Node& node = graph.node(producer);
    if (node.op == ArgMaxOp::kName || node.op == ArgMinOp::kName) {
      const std::optional<Shape>& shape = ShapeOf(graph, node.inputs[0]);
      int64_t axis = node.attributes.Int("axis", 0);
      if (!shape.has_value()) return false;
      if (axis < 0) axis += static_cast<int64_t>(shape->size());
      return (*shape)[axis] <= size;
    }
    const bool whole = node.op == CastOp::kName && IsInteger(graph.value(value).dtype) &&
                       DTypeSize(graph.value(value).dtype) >= 4;
    if (!whole && FactsOf(node.op).elements != Elements::kSame) return false;
    value = node.inputs[0];
  }
}

// [rows, ..., 1], in row i of it nothing but i.
bool CountRows(const Tensor& places, int64_t rows) {
  const Shape& shape = places.shape();
  if (places.dtype() != DType::kInt64 || shape.size() < 2 || shape[0] != rows || rows == 0 ||
      shape.back() != 1) {
    return false;
  }
  const absl::Span<const int64_t> values = places.span<int64_t>();
  const int64_t of_row = static_cast<int64_t>(values.size()) / rows;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<int64_t>(i) / of_row) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ValueId> WholeGatherRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != GatherOp::kName) return kNone;
  const Tensor* places = KnownConstant(graph, node.inputs[1]);
  const std::optional<Shape>& data = ShapeOf(graph, node.inputs[0]);
  // A table is looked up at every length, of which its own is one; rows that were laid end to end
  // are as many as there are places at every size. One place alone is a Gather at every size of a
  // dim.
  if (graph.ProducerIf(node.inputs[0], ReshapeOp::kName) == nullptr &&
      graph.ProducerIf(node.inputs[0], FlattenOp::kName) == nullptr) {
    return kNone;
  }
  if (places == nullptr || places->dtype() != DType::kInt64 || places->shape().size() < 2 ||
      !data.has_value() || !ShapeOf(graph, node.outputs[0]).has_value()) {
    return kNone;
  }
  int64_t axis = node.attributes.Int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(data->size());
  const int64_t size = (*data)[axis];
  const absl::Span<const int64_t> values = places->span<int64_t>();
  if (static_cast<int64_t>(values.size()) != size) return kNone;
  for (int64_t i = 0; i < size; ++i) {
    if (values[i] != i && values[i] != i - size) return kNone;
  }
  const Shape shape = *ShapeOf(graph, node.outputs[0]);
  return AddReshape(graph, node.inputs[0], shape);
}

absl::StatusOr<ValueId> FlatRowsRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != GatherOp::kName || node.attributes.Int("axis", 0) != 0) return kNone;
  const std::optional<Shape>& flat = ShapeOf(graph, node.inputs[0]);
  const Node* add = graph.ProducerIf(node.inputs[1], AddOp::kName);
  if (add == nullptr || !flat.has_value() || !ShapeOf(graph, node.outputs[0]).has_value()) {
    return kNone;
  }
  for (size_t side = 0; side < 2; ++side) {
    const std::optional<int64_t> length = LengthOfRows(graph, add->inputs[side]);
    if (!length.has_value()) continue;
    const ValueId places = add->inputs[1 - side];
    const int64_t rows = (*ShapeOf(graph, add->inputs[side]))[0];
    if (!HasShape(graph, places, {rows}) || (*flat)[0] != rows * *length ||
        !ArePlaces(graph, places, *length)) {
      continue;
    }
    Shape shape = {rows, *length};
    shape.insert(shape.end(), flat->begin() + 1, flat->end());
    ASSIGN_OR_RETURN(const ValueId data, AddReshape(graph, node.inputs[0], shape));
    ASSIGN_OR_RETURN(const ValueId columns, AddReshape(graph, places, {rows, 1}));
    return AddInferred(graph, GatherNdOp::kName, {data, columns}, {{"batch_dims", int64_t{1}}});
  }
  return kNone;
}

absl::StatusOr<ValueId> CountedRowsRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != GatherNdOp::kName || node.attributes.Int("batch_dims", 0) != 0) return kNone;
  const std::optional<Shape>& data = ShapeOf(graph, node.inputs[0]);
  const Node* concat = graph.ProducerIf(node.inputs[1], ConcatOp::kName);
  if (concat == nullptr || concat->inputs.size() != 2 || !data.has_value() || data->empty()) {
    return kNone;
  }
  const std::optional<Shape>& rest = ShapeOf(graph, concat->inputs[1]);
  const Tensor* rows = KnownConstant(graph, concat->inputs[0]);
  if (rows == nullptr || !rest.has_value() || rest->empty()) return kNone;
  const int64_t axis = concat->attributes.Int("axis", 0);
  const bool at_end = axis == -1 || axis + 1 == static_cast<int64_t>(rest->size());
  if (!at_end || !CountRows(*rows, (*data)[0])) return kNone;
  return AddInferred(graph, GatherNdOp::kName, {node.inputs[0], concat->inputs[1]},
                     {{"batch_dims", int64_t{1}}});
}

absl::StatusOr<ValueId> WholePiecesRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != GatherElementsOp::kName) return kNone;
  const std::optional<Shape>& data = ShapeOf(graph, node.inputs[0]);
  const Node* expand = graph.ProducerIf(node.inputs[1], ExpandOp::kName);
  if (expand == nullptr || !data.has_value()) return kNone;
  const std::optional<Shape> places = ShapeOf(graph, expand->inputs[0]);
  const std::optional<Shape> wide = ShapeOf(graph, node.inputs[1]);
  const auto rank = static_cast<int64_t>(data->size());
  int64_t axis = node.attributes.Int("axis", 0);
  if (axis < 0) axis += rank;
  if (!places.has_value() || !wide.has_value() || static_cast<int64_t>(places->size()) != rank ||
      axis < 0 || axis + 1 >= rank) {
    return kNone;
  }
  for (int64_t d = 0; d < rank; ++d) {
    const bool fits = d == axis  ? (*places)[d] == (*wide)[d]
                      : d < axis ? (*places)[d] == (*data)[d] && (*wide)[d] == (*data)[d]
                                 : (*places)[d] == 1 && (*wide)[d] == (*data)[d];
    if (!fits) return kNone;
  }
  Shape columns(places->begin(), places->begin() + axis + 1);
  columns.push_back(1);
  ASSIGN_OR_RETURN(ValueId found, AddReshape(graph, expand->inputs[0], columns));
  if (graph.value(found).dtype != DType::kInt64) {
    ASSIGN_OR_RETURN(found, AddCast(graph, found, DType::kInt64));
  }
  return AddInferred(graph, GatherNdOp::kName, {graph.node(id).inputs[0], found},
                     {{"batch_dims", axis}});
}

}  // namespace reprise
