#include "tests/conformance/execute.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/op.h"
#include "runtime/passes/pass.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;
constexpr int64_t kMaxShapeInput = 64;  // elements that may be part of a binding

// The value of a parameter expression.
absl::StatusOr<Tensor> EvaluateParameter(const ParameterExpr& expr,
                                         const std::vector<Tensor>& parameters) {
  if (expr.is_leaf()) return parameters[expr.index()];
  if (expr.is_constant()) return expr.constant();
  std::vector<std::optional<Tensor>> operands;
  Node node;
  node.op = expr.op();
  node.attributes = expr.attributes();
  for (const ParameterExprPtr& input : expr.inputs()) {
    node.inputs.push_back(input == nullptr ? kNone : 0);
    operands.emplace_back();
    if (input == nullptr) continue;
    ASSIGN_OR_RETURN(operands.back(), EvaluateParameter(*input, parameters));
  }
  node.outputs = {0};
  ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, operands, kMaxBytes));
  return results[0];
}

// Every node of `graph` by its reference kernel.
absl::StatusOr<std::vector<Tensor>> EvaluateGraph(const Graph& graph, const ImportedModel& model,
                                                  const std::vector<Tensor>& inputs) {
  std::vector<std::optional<Tensor>> values(graph.num_values());
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kConstant) values[id] = value.constant;
    if (value.kind == Value::Kind::kParameter) {
      ASSIGN_OR_RETURN(values[id], EvaluateParameter(*value.parameter, model.parameters));
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

// The sizes of all symbols, and with `shape_inputs` the values of small integer inputs.
Binding BindingOf(const ImportedModel& model, const std::vector<Tensor>& inputs,
                  bool shape_inputs) {
  Binding binding;
  for (size_t i = 0; i < inputs.size() && i < model.inputs.size(); ++i) {
    const ModelIo& io = model.inputs[i];
    for (size_t d = 0; d < io.dims.size() && d < inputs[i].shape().size(); ++d) {
      if (!io.dims[d].is_constant()) binding.axes[io.dims[d].symbol] = inputs[i].shape()[d];
    }
    const bool can_bind = inputs[i].dtype() == DType::kInt64 ||
                          inputs[i].dtype() == DType::kInt32 || inputs[i].dtype() == DType::kBool;
    if (shape_inputs && can_bind && inputs[i].num_elements() <= kMaxShapeInput) {
      binding.shape_inputs[io.name] = *inputs[i].ToInt64s();
    }
  }
  return binding;
}

absl::StatusOr<std::vector<Tensor>> ExecutePasses(ImportedModel model,
                                                  const std::vector<Tensor>& inputs) {
  RETURN_IF_ERROR(RunLoadPasses(model.graph));
  absl::StatusOr<Graph> graph = Specialize(model.graph, BindingOf(model, inputs, false));
  if (graph.status().code() == absl::StatusCode::kFailedPrecondition) {
    graph = Specialize(model.graph, BindingOf(model, inputs, true));
  }
  if (!graph.ok()) return graph.status();
  RETURN_IF_ERROR(Verify(*graph, /*specialized=*/true));
  RETURN_IF_ERROR(RunCapturePasses(*graph));
  return EvaluateGraph(*graph, model, inputs);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> Execute(const ImportedModel& model,
                                            const std::vector<Tensor>& inputs,
                                            const std::string& device) {
  if (device == "rows") return EvaluateGraph(model.graph, model, inputs);
  if (device == "passes") return ExecutePasses(model, inputs);
  return absl::InvalidArgumentError(absl::StrCat("unknown device '", device, "'"));
}

}  // namespace reprise
