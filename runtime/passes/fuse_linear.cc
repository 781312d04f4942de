// MatMul with a parameter on the right, the Add of a bias and an activation that follow become one
// reprise.Linear; behind such a product they join it. (Gemm with a parameter has become
// MatMul before, in rules_matmul.cc.)
#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/ops/linear_form.h"
#include "runtime/ops/unary.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

struct Linear {
  const ops::LinearForm* form = nullptr;
  std::vector<ValueId> inputs;  // of the product alone; 1 is the matrix, [k, n]
  ValueId bias = kNone;         // [n], kNone: none
  std::string activation = "none";
  ValueId result = kNone;
};

// A weight that an Add broadcasts along the last dim of `columns` elements alone.
bool IsBias(const Graph& graph, ValueId value, int64_t columns) {
  if (value == kNone || !IsWeight(graph, value) || !IsFloat32(graph, value)) return false;
  const Shape& shape = *ShapeOf(graph, value);
  return !shape.empty() && shape.back() == columns && NumElements(shape) == columns;
}

std::optional<Linear> MatchProduct(const Graph& graph, const Node& node) {
  if (const ops::LinearForm* form = ops::LinearFormOf(node.op); form != nullptr) {
    if (node.input(form->residual) != kNone ||
        node.attributes.String("activation", "none") != "none") {
      return std::nullopt;
    }
    Linear linear = {.form = form, .inputs = node.inputs, .result = node.outputs[0]};
    linear.bias = node.input(form->bias);
    linear.inputs.resize(std::min(linear.inputs.size(), form->bias));
    return linear;
  }
  if (node.op != "MatMul" || !IsFloat32(graph, node.inputs[0]) ||
      !IsFloat32(graph, node.inputs[1]) || !IsParameter(graph, node.inputs[1]) ||
      ShapeOf(graph, node.inputs[1])->size() != 2 || ShapeOf(graph, node.inputs[0])->size() < 2) {
    return std::nullopt;
  }
  return Linear{.form = ops::LinearFormOf("reprise.Linear"),
                .inputs = {node.inputs[0], node.inputs[1]},
                .result = node.outputs[0]};
}

absl::Status AbsorbBias(Graph& graph, Linear& linear) {
  const NodeId user = OnlyUser(graph, linear.result);
  if (linear.bias != kNone || user == kNone || graph.node(user).op != "Add") {
    return absl::OkStatus();
  }
  const int64_t columns = ShapeOf(graph, linear.inputs[1])->back();
  const ValueId bias = OtherInput(graph.node(user), linear.result);
  const ValueId sum = graph.node(user).outputs[0];
  if (!IsBias(graph, bias, columns) || !SameShape(graph, sum, linear.result)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(linear.bias, AddReshape(graph, bias, {columns}));
  linear.result = sum;
  return absl::OkStatus();
}

// y * sigmoid(y), where nothing else reads either.
ValueId SiluOf(const Graph& graph, ValueId y) {
  const std::vector<NodeId>& users = graph.value(y).users;
  if (users.size() != 2 || graph.IsOutput(y)) return kNone;
  for (int i = 0; i < 2; ++i) {
    const Node& sigmoid = graph.node(users[i]);
    const Node& mul = graph.node(users[1 - i]);
    if (sigmoid.op != "Sigmoid" || mul.op != "Mul") continue;
    if (OnlyUser(graph, sigmoid.outputs[0]) != users[1 - i]) continue;
    return mul.outputs[0];
  }
  return kNone;
}

void AbsorbActivation(const Graph& graph, Linear& linear) {
  if (const ValueId silu = SiluOf(graph, linear.result); silu != kNone) {
    linear.activation = "silu";
    linear.result = silu;
    return;
  }
  const NodeId user = OnlyUser(graph, linear.result);
  if (user == kNone) return;
  const Node& node = graph.node(user);
  if (node.op == "Gelu") {
    linear.activation =
        node.attributes.String("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu";
  } else if (node.op == "com.microsoft.QuickGelu") {
    const float alpha = node.attributes.Float("alpha", ops::kQuickGeluAlpha);
    if (alpha != 1 && alpha != ops::kQuickGeluAlpha) return;
    linear.activation = alpha == 1 ? "silu" : "quick_gelu";
  } else if (node.op == "Relu") {
    linear.activation = "relu";
  } else if (node.op == "Tanh") {
    linear.activation = "tanh";
  } else if (node.op == "Sigmoid") {
    linear.activation = "sigmoid";
  } else {
    return;
  }
  linear.result = node.outputs[0];
}

class FuseLinearPass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_linear"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed) continue;
      std::optional<Linear> linear = MatchProduct(graph, graph.node(id));
      if (!linear.has_value()) continue;
      RETURN_IF_ERROR(AbsorbBias(graph, *linear));
      AbsorbActivation(graph, *linear);
      if (linear->result == graph.node(id).outputs[0] && graph.node(id).op == linear->form->op) {
        continue;  // Nothing has joined it.
      }
      std::vector<ValueId> inputs = std::move(linear->inputs);
      if (linear->bias != kNone) {
        inputs.resize(linear->form->bias, kNone);
        inputs.push_back(linear->bias);
      }
      const std::string name = graph.node(id).name;
      ASSIGN_OR_RETURN(const ValueId fused,
                       AddInferred(graph, linear->form->op, std::move(inputs),
                                   {{"activation", linear->activation}}, name));
      Replace(graph, linear->result, fused);
      changed = true;
    }
    return changed;
  }
};

class FuseResidualPass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_residual"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed || graph.node(id).op != "Add") continue;
      const std::vector<ValueId> inputs = graph.node(id).inputs;
      const ValueId sum = graph.node(id).outputs[0];
      // Of two products the later one waits for the other.
      for (int side = 1; side >= 0; --side) {
        const ValueId y = inputs[side];
        const ValueId residual = inputs[1 - side];
        const NodeId producer = ProducerOf(graph, y);
        if (producer == kNone || OnlyUser(graph, y) != id) continue;
        const Node* linear = &graph.node(producer);
        const ops::LinearForm* form = ops::LinearFormOf(linear->op);
        // Alone in reading the product, the Add is no input of what makes the residual.
        if (form == nullptr || linear->input(form->residual) != kNone) continue;
        if (!IsFloat32(graph, residual) || !SameShape(graph, residual, y) ||
            !SameShape(graph, sum, y) || IsWeight(graph, residual)) {
          continue;
        }
        std::vector<ValueId> operands = linear->inputs;
        operands.resize(form->residual + 1, kNone);
        operands[form->residual] = residual;
        const Attributes attributes = linear->attributes;
        const std::string name = linear->name;
        ASSIGN_OR_RETURN(const ValueId fused,
                         AddInferred(graph, form->op, std::move(operands), attributes, name));
        Replace(graph, sum, fused);
        changed = true;
        break;
      }
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> FuseLinear() { return std::make_unique<FuseLinearPass>(); }
std::unique_ptr<Pass> FuseResidual() { return std::make_unique<FuseResidualPass>(); }

}  // namespace reprise
