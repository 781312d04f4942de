#include <algorithm>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/rewrite.h"
#include "runtime/passes/rules.h"

namespace reprise {
namespace {

// Where row i of many begins among as many positions laid end to end: 0, length, 2 * length, ...
// The length; nullopt where `value` is something else.
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

// Every element is a place among `size` of them, whatever the inputs hold: the largest of as many.
bool ArePlaces(const Graph& graph, ValueId value, int64_t size) {
  while (true) {
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return false;
    const Node& node = graph.node(producer);
    if (node.op == "ArgMax" || node.op == "ArgMin") {
      const std::optional<Shape>& shape = ShapeOf(graph, node.inputs[0]);
      int64_t axis = node.attributes.Int("axis", 0);
      if (!shape.has_value()) return false;
      if (axis < 0) axis += static_cast<int64_t>(shape->size());
      return (*shape)[axis] <= size;
    }
    const bool whole = node.op == "Cast" && IsInteger(graph.value(value).dtype) &&
                       DTypeSize(graph.value(value).dtype) >= 4;
    if (!whole && node.op != "Reshape" && node.op != "Squeeze" && node.op != "Unsqueeze" &&
        node.op != "Identity") {
      return false;
    }
    value = node.inputs[0];
  }
}

}  // namespace

absl::StatusOr<ValueId> FlatRowsRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != "Gather" || node.attributes.Int("axis", 0) != 0) return kNone;
  const std::optional<Shape>& flat = ShapeOf(graph, node.inputs[0]);
  const Node* add = graph.ProducerIf(node.inputs[1], "Add");
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
    return AddInferred(graph, "GatherND", {data, columns}, {{"batch_dims", int64_t{1}}});
  }
  return kNone;
}

}  // namespace reprise
