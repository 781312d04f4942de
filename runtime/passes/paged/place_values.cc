#include "runtime/passes/paged/place_values.h"

#include <algorithm>
#include <optional>

#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/reduce/rotary_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/row_values.h"
#include "runtime/passes/paged/whole_tables.h"

namespace reprise {
namespace {

constexpr int kMaxOffsetSteps = 16;

// Returns the dims that `value` needs where `node` reads it, the one of tokens among them.
size_t RankFor(const PastValues& values, const Node& node, const OpRow& row, ValueId value) {
  const std::optional<Shape> own = values.ShapeOf(value);
  const std::optional<Shape> result = PastValues::ShapeAt(values.a(), node.outputs[0]);
  if (row.Has(kElementwise) && result.has_value()) return result->size();
  const bool by_row = own->size() == 1 && own->front() == values.a().rows;
  return by_row ? 1 : std::max<size_t>(own->size(), 2);
}

// Returns the number that is added to positions on the way to `value`; nullopt where it is none of
// them.
std::optional<int64_t> OffsetFrom(const Graph& graph, ValueId value, ValueId positions) {
  int64_t offset = 0;
  for (int step = 0; step < kMaxOffsetSteps; ++step) {
    if (value == positions) return offset;
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return std::nullopt;
    const Node& node = graph.node(producer);
    if (node.op == AddOp::kName) {
      const auto left = KnownScalar(graph, node.inputs[0]);
      const auto right = KnownScalar(graph, node.inputs[1]);
      if (left.has_value() == right.has_value()) return std::nullopt;
      offset += static_cast<int64_t>(left.has_value() ? *left : *right);
      value = node.inputs[left.has_value() ? 1 : 0];
      continue;
    }
    const bool same = FactsOf(node.op).HoldsAllOfFirst() || node.op == CastOp::kName ||
                      node.op == CheckRangeOp::kName;
    if (!same) return std::nullopt;
    value = node.inputs[0];
  }
  return std::nullopt;
}

}  // namespace

int64_t ComputeFromPositions(Graph& graph, ValueId positions, const PastTraces& traces) {
  PastValues values(graph, traces.a, traces.b);
  WholeTables tables(graph, values, traces.longest.has_value() ? &*traces.longest : nullptr);
  RowValues rows(graph, positions, values, tables);
  for (const NodeId id : graph.NodeIds()) {
    const Node node = graph.node(id);  // A copy: adding nodes moves them.
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || values.IsStatic(node.output(0))) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNone || row->IsValueInput(i) || !values.Depends(input)) continue;
      ValueId taken = kNone;
      if (values.ShapeOf(input).has_value()) {
        taken = rows.At(input, RankFor(values, node, *row, input));
      } else if (node.op == GatherOp::kName && i == GatherOp::kX) {
        taken = tables.Of(input);
      }
      // Where there is none the value stays, and the check of the whole graph tells.
      if (taken != kNone) graph.SetInput(id, i, taken);
    }
  }
  return rows.positions_of_tables();
}

int64_t PositionsOfTables(const Graph& graph, ValueId positions) {
  int64_t smallest = 0;
  const auto look = [&](ValueId table, ValueId index) {
    if (table == kNone || index == kNone || !IsWeight(graph, table)) return;
    const std::optional<Shape>& shape = graph.value(table).shape;
    const std::optional<int64_t> offset = OffsetFrom(graph, index, positions);
    if (!shape.has_value() || shape->empty() || !offset.has_value()) return;
    const int64_t rows = (*shape)[0] - *offset;
    smallest = smallest == 0 ? rows : std::min(smallest, rows);
  };
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op == GatherOp::kName && node.attributes.Int("axis", 0) == 0) {
      look(node.inputs[0], node.inputs[1]);
    } else if (node.op == MicrosoftRotaryEmbeddingOp::kName) {
      look(node.inputs[2], node.inputs[1]);
    } else if (node.op == RotaryEmbeddingOp::kName) {
      look(node.inputs[1], node.input(3));
    }
  }
  return smallest;
}

}  // namespace reprise
