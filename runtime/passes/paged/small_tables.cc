#include "runtime/passes/paged/small_tables.h"

#include <cstdint>
#include <utility>

#include "runtime/ops/movement/gather_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Elements of a parameter that may decide what is added to scores, at most.
constexpr int64_t kMostBiasElements = int64_t{1} << 16;

}  // namespace

bool TakeSmallTables(Graph& graph, const ParameterValueOf& value_of) {
  bool taken = false;
  if (value_of == nullptr) return taken;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != GatherOp::kName || !ShapeOf(graph, node.inputs[1]).has_value()) continue;
    const Value& table = graph.value(node.inputs[0]);
    if (table.kind != Value::Kind::kParameter || table.dtype != DType::kFloat32 ||
        NumElements(*table.shape) > kMostBiasElements ||
        graph.ConstantOf(node.inputs[1]) == nullptr) {
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
