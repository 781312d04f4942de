#include <optional>

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// The elements of a tensor in their order count: that at i is (i / repeat) % size. Places from the
// end (-1) are not looked for.
struct Count {
  int64_t repeat;
  int64_t size;

  int64_t At(int64_t i) const { return i / repeat % size; }
};

// Returns whether every `step`-th element of a constant, from the one at `first` on, counts.
bool ConstantCounts(const Tensor& values, int64_t first, int64_t step, const Count& count) {
  if (values.dtype() != DType::kInt64) return false;
  const absl::Span<const int64_t> all = values.span<int64_t>();
  for (int64_t i = 0; first + i * step < static_cast<int64_t>(all.size()); ++i) {
    if (all[first + i * step] != count.At(i)) return false;
  }
  return true;
}

// Returns the count that the operand of an Expand to `to` must have for its result to be as
// `count` says. Copies may lie within an element that is repeated, and around all that is counted;
// nullopt where they lie elsewhere.
std::optional<Count> BeforeExpand(const Shape& from, const Shape& to, const Count& count) {
  if (count.size == 1) return count;
  const auto copied = [&](size_t d) {
    const size_t added = to.size() - from.size();
    return to[d] != 1 && (d < added || from[d - added] == 1);
  };
  size_t d = to.size();
  int64_t repeated = 1, counted = 1, repeat = 1;
  while (d > 0 && repeated < count.repeat) {
    repeated *= to[--d];
    if (!copied(d)) repeat *= to[d];
  }
  while (d > 0 && counted < count.size) {
    if (copied(--d)) return std::nullopt;
    counted *= to[d];
  }
  if (repeated != count.repeat || counted != count.size) return std::nullopt;
  return Count{repeat, count.size};
}

// Returns whether a value counts, whatever a request holds.
bool ValueCounts(const Graph& graph, ValueId value, Count count) {
  while (true) {
    if (const Tensor* known = KnownConstant(graph, value)) {
      return ConstantCounts(*known, /*first=*/0, /*step=*/1, count);
    }
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return false;
    const Node& node = graph.node(producer);
    if (node.op == ExpandOp::kName) {
      const std::optional<Shape>&from = ShapeOf(graph, node.inputs[0]), &to = ShapeOf(graph, value);
      if (!from.has_value() || !to.has_value() || to->size() < from->size()) return false;
      const std::optional<Count> before = BeforeExpand(*from, *to, count);
      if (!before.has_value()) return false;
      count = *before;
    } else if (FactsOf(node.op).elements != Elements::kSame) {
      return false;
    }
    value = node.inputs[0];
  }
}

// Returns whether column `column` of `columns` of the indices [..., columns] counts.
bool ColumnCounts(const Graph& graph, ValueId indices, int64_t column, int64_t columns,
                  const Count& count) {
  if (const Tensor* known = KnownConstant(graph, indices)) {
    return ConstantCounts(*known, column, columns, count);
  }
  if (columns == 1) return ValueCounts(graph, indices, count);
  const Node* concat = graph.ProducerIf(indices, ConcatOp::kName);
  if (concat == nullptr || static_cast<int64_t>(concat->inputs.size()) != columns) return false;
  const int64_t axis = concat->attributes.Int("axis", 0);
  const std::optional<Shape>& piece = ShapeOf(graph, concat->inputs[static_cast<size_t>(column)]);
  if (!piece.has_value() || piece->empty() || piece->back() != 1) return false;
  if (axis != -1 && axis + 1 != static_cast<int64_t>(piece->size())) return false;
  return ValueCounts(graph, concat->inputs[static_cast<size_t>(column)], count);
}

}  // namespace

absl::StatusOr<ValueId> WholeScatterRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != ScatterNdOp::kName || node.attributes.String("reduction", "none") != "none")
    return kNone;
  const std::optional<Shape>& data = ShapeOf(graph, node.inputs[0]);
  const std::optional<Shape>& indices = ShapeOf(graph, node.inputs[1]);
  if (!data.has_value() || !indices.has_value() || indices->empty() ||
      !SameShape(graph, node.inputs[0], node.inputs[2])) {
    return kNone;
  }
  const int64_t columns = indices->back();
  const absl::Span<const int64_t> all = *data;
  if (columns < 1 || columns > static_cast<int64_t>(all.size())) return kNone;
  const absl::Span<const int64_t> places = all.first(static_cast<size_t>(columns));
  if (NumElements(places) == 0 ||
      absl::MakeConstSpan(*indices).first(indices->size() - 1) != places) {
    return kNone;
  }
  for (int64_t column = 0; column < columns; ++column) {
    const auto of = static_cast<size_t>(column);
    const Count count = {NumElements(places.subspan(of + 1)), places[of]};
    if (!ColumnCounts(graph, node.inputs[1], column, columns, count)) return kNone;
  }
  return node.inputs[2];
}

}  // namespace reprise
