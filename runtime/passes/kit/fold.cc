#include "runtime/passes/kit/fold.h"

#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

absl::StatusOr<bool> FoldNode(Graph& graph, NodeId id, int64_t max_bytes) {
  const Node& node = graph.node(id);
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || row->Has(kNoFold)) return false;
  std::vector<std::optional<Tensor>> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId input : node.inputs) {
    if (input == kNone) {
      inputs.emplace_back();
      continue;
    }
    const Value& value = graph.value(input);
    if (value.kind == Value::Kind::kConstant && !value.overridable) {
      inputs.emplace_back(value.constant);
    } else if (row->Has(kShapeOnly) && value.shape.has_value() && !value.overridable &&
               value.dtype != DType::kUndefined) {
      inputs.emplace_back(Tensor(value.dtype, *value.shape, nullptr));
    } else {
      return false;
    }
  }
  auto outputs = Evaluate(node, inputs, max_bytes);
  if (!outputs.ok()) {
    const absl::StatusCode code = outputs.status().code();
    if (code == absl::StatusCode::kInvalidArgument) return outputs.status();
    return false;  // Too large, or no kernel: it is computed when the graph runs.
  }
  const std::vector<ValueId> results = node.outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] == kNone || graph.value(results[i]).kind != Value::Kind::kResult) continue;
    graph.ReplaceWithConstant(results[i], std::move((*outputs)[i]));
  }
  return true;
}

}  // namespace reprise
