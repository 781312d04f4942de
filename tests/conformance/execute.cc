#include "tests/conformance/execute.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/op.h"

namespace reprise {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;

absl::StatusOr<std::vector<Tensor>> ExecuteRows(const ImportedModel& model,
                                                const std::vector<Tensor>& inputs) {
  const Graph& graph = model.graph;
  std::vector<std::optional<Tensor>> values(graph.num_values());
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kConstant) values[id] = value.constant;
    if (value.kind == Value::Kind::kParameter) {
      values[id] = model.parameters[value.parameter->index()];
    }
  }
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ValueId id = graph.FindValue(model.inputs[i].name);
    if (i < inputs.size() && id != kNone) values[id] = inputs[i];
  }
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    std::vector<std::optional<Tensor>> operands;
    for (ValueId input : node.inputs) {
      operands.push_back(input == kNone ? std::nullopt : values[input]);
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, operands, kMaxBytes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) values[node.outputs[i]] = std::move(results[i]);
    }
  }
  std::vector<Tensor> outputs;
  for (ValueId id : graph.outputs()) {
    if (!values[id].has_value()) return absl::InternalError("an output has no value");
    outputs.push_back(*values[id]);
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> Execute(const ImportedModel& model,
                                            const std::vector<Tensor>& inputs,
                                            const std::string& device) {
  if (device == "rows") return ExecuteRows(model, inputs);
  return absl::InvalidArgumentError(absl::StrCat("unknown device '", device, "'"));
}

}  // namespace reprise
