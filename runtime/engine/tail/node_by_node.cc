#include "runtime/engine/tail/node_by_node.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"

namespace reprise {
namespace {

class NodeByNode {
 public:
  NodeByNode(const Graph& graph, GivenValue given, EvaluateNode evaluate)
      : graph_(graph), given_(given), evaluate_(evaluate), values_(graph.num_values()) {}

  absl::StatusOr<std::vector<Tensor>> Run() {
    std::vector<ValueId> asked(graph_.outputs().rbegin(), graph_.outputs().rend());
    while (!asked.empty()) {
      if (!IsMissing(asked.back())) {
        asked.pop_back();
        continue;
      }
      const Node& node = graph_.node(graph_.value(asked.back()).producer);
      ASSIGN_OR_RETURN(const std::vector<ValueId> operands, OperandsOf(node));
      const size_t before = asked.size();
      absl::c_copy_if(operands, std::back_inserter(asked),
                      [&](ValueId operand) { return IsMissing(operand); });
      if (asked.size() == before) RETURN_IF_ERROR(Compute(node, operands));
    }
    std::vector<Tensor> results;
    for (const ValueId output : graph_.outputs()) {
      ASSIGN_OR_RETURN(results.emplace_back(), ValueOf(output));
    }
    return results;
  }

 private:
  bool IsMissing(ValueId id) const {
    return id != kNone && graph_.value(id).kind == Value::Kind::kResult && !values_[id].has_value();
  }

  absl::StatusOr<Tensor> ValueOf(ValueId id) const {
    if (values_[id].has_value()) return *values_[id];
    const Value& value = graph_.value(id);
    if (value.kind == Value::Kind::kConstant) return value.constant;
    return given_(value);
  }

  // Returns the values that `node` needs next: of an If, the condition, then the results of the
  // branch that it chooses.
  absl::StatusOr<std::vector<ValueId>> OperandsOf(const Node& node) const {
    if (node.op != IfOp::kName) return node.inputs;
    const ValueId condition = node.inputs[IfOp::kCondition];
    if (IsMissing(condition)) return std::vector<ValueId>{condition};
    ASSIGN_OR_RETURN(const Tensor value, ValueOf(condition));
    ASSIGN_OR_RETURN(const int64_t chosen,
                     OneElement(node, graph_.value(condition).name, value, DType::kBool));
    const auto first = node.inputs.begin() + 1;
    const auto middle = first + static_cast<std::ptrdiff_t>(node.inputs.size() / 2);
    return chosen != 0 ? std::vector<ValueId>(first, middle)
                       : std::vector<ValueId>(middle, node.inputs.end());
  }

  // Computes `node`, whose operands are there.
  absl::Status Compute(const Node& node, const std::vector<ValueId>& operands) {
    std::vector<std::optional<Tensor>> inputs(operands.size());
    std::vector<std::string> names;
    for (size_t i = 0; i < operands.size(); ++i) {
      names.push_back(operands[i] == kNone ? "" : graph_.value(operands[i]).name);
      if (operands[i] == kNone) continue;
      ASSIGN_OR_RETURN(inputs[i], ValueOf(operands[i]));
    }
    if (node.op == IfOp::kName) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != kNone) values_[node.outputs[i]] = std::move(inputs[i]);
      }
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> results, evaluate_(node, inputs, names));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) values_[node.outputs[i]] = std::move(results[i]);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const GivenValue given_;
  const EvaluateNode evaluate_;
  std::vector<std::optional<Tensor>> values_;
};

}  // namespace

absl::StatusOr<int64_t> OneElement(const Node& node, const std::string& name, const Tensor& value,
                                   DType dtype) {
  if (value.dtype() != dtype || value.num_elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        NodeLabel(node), ": '", name, "', which decides the next step, is ",
        DTypeName(value.dtype()), ShapeToString(value.shape()), ", not one ", DTypeName(dtype)));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> elements, value.ToInt64s());
  return elements[0];
}

absl::StatusOr<std::vector<Tensor>> RunNodeByNode(const Graph& graph, GivenValue given,
                                                  EvaluateNode evaluate) {
  return NodeByNode(graph, given, evaluate).Run();
}

}  // namespace reprise
