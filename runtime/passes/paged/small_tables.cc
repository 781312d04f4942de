#include "runtime/passes/paged/small_tables.h"

#include <cstdint>
#include <utility>

#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// The most elements of a parameter that may decide the values added to scores.
constexpr int64_t kMostBiasElements = int64_t{1} << 16;

// Returns whether all operands but the table are constants.
bool PlacesAreKnown(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone && graph.ConstantOf(node.inputs[i]) == nullptr) return false;
  }
  return true;
}

}  // namespace

bool TakeSmallTables(Graph& graph, const ParameterValueOf& value_of) {
  bool taken = false;
  if (value_of == nullptr) return taken;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != GatherOp::kName && node.op != SliceOp::kName) continue;
    const Value& table = graph.value(node.inputs[0]);
    if (table.kind != Value::Kind::kParameter || table.dtype != DType::kFloat32 ||
        NumElements(*table.shape) > kMostBiasElements || !PlacesAreKnown(graph, node)) {
      continue;
    }
    std::optional<Tensor> value = value_of(*table.parameter);
    if (!value.has_value()) continue;
    graph.ReplaceWithConstant(node.inputs[0], *std::move(value));
    taken = true;
  }
  return taken;
}

}  // namespace reprise
