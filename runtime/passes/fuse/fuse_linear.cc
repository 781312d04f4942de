// Fuses MatMul with a parameter on the right, a multiplication of each column by a factor after
// it (a BatchNormalization of rows is one, too), the Add of a bias and an activation into one
// reprise.Linear; after such a product they join it. (Gemm with a parameter has become MatMul
// before, in rules_matmul.cc.)
#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/linear_form.h"
#include "runtime/ops/weights/narrowed_weights.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/batch_norm.h"

namespace reprise {
namespace {

struct Linear {
  const ops::LinearForm* form = nullptr;
  std::vector<ValueId> inputs;  // the product's alone; 1 is the matrix, [k, n]
  ValueId bias = kNone;         // [n], kNone: none
  bool takes_factors = false;   // the columns can be scaled
  std::string activation = "none";
  ValueId result = kNone;
};

// Returns whether it is a weight that is broadcast along the last dim of `columns` elements alone.
bool IsByColumn(const Graph& graph, ValueId value, int64_t columns) {
  if (value == kNone || !IsWeight(graph, value) || !IsFloat32(graph, value)) return false;
  const Shape& shape = *ShapeOf(graph, value);
  return !shape.empty() && shape.back() == columns && NumElements(shape) == columns;
}

// Floats as the model's file has them, turned at most, whether a half holds them or not.
bool IsStoredAsFloats(const ParameterExpr& expression) {
  if (expression.is_leaf()) return expression.dtype() == DType::kFloat32;
  return (expression.op() == TransposeOp::kName || expression.op() == ReshapeOp::kName) &&
         IsStoredAsFloats(*expression.inputs()[0]);
}

std::optional<Linear> MatchProduct(const Graph& graph, const Node& node) {
  if (const ops::LinearForm* form = ops::LinearFormOf(node.op); form != nullptr) {
    if (node.input(form->residual) != kNone ||
        LinearOp::From(node.attributes).activation != "none") {
      return std::nullopt;
    }
    Linear linear = {.form = form, .inputs = node.inputs, .result = node.outputs[0]};
    linear.bias = node.input(form->bias);
    linear.inputs.resize(std::min(linear.inputs.size(), form->bias));
    return linear;
  }
  if (node.op != MatMulOp::kName || !IsFloat32(graph, node.inputs[0]) ||
      !IsFloat32(graph, node.inputs[1]) || !IsParameter(graph, node.inputs[1]) ||
      ShapeOf(graph, node.inputs[1])->size() != 2 || ShapeOf(graph, node.inputs[0])->size() < 2) {
    return std::nullopt;
  }
  return Linear{.form = ops::LinearFormOf(LinearOp::kName),
                .inputs = {node.inputs[0], node.inputs[1]},
                .result = node.outputs[0]};
}

// Returns whether factors of columns may go into the weights. Weights stored in fewer bits are
// multiplied as they are, and weights that another product shares would be held twice.
bool TakesFactors(const Graph& graph, const Linear& linear) {
  const ValueId weight = linear.inputs[1];
  return linear.form->op == LinearOp::kName && IsParameter(graph, weight) &&
         OnlyUser(graph, weight) != kNone &&
         IsStoredAsFloats(*ops::WithoutNarrowing(graph.value(weight).parameter));
}

// Absorbs a product or a sum with a weight of each column.
absl::StatusOr<bool> AbsorbByColumn(Graph& graph, Linear& linear) {
  const NodeId user = OnlyUser(graph, linear.result);
  if (user == kNone) return false;
  const Node node = graph.node(user);  // A copy: adding nodes moves them.
  const bool scales = node.op == MulOp::kName;
  if (!scales && node.op != AddOp::kName) return false;
  if (!linear.takes_factors && (scales || linear.bias != kNone)) return false;
  const Shape matrix = *ShapeOf(graph, linear.inputs[1]);
  const Shape columns = {matrix.back()};
  ValueId other = OtherInput(node, linear.result);
  if (!IsByColumn(graph, other, columns[0]) || !SameShape(graph, node.outputs[0], linear.result) ||
      (linear.bias != kNone && !IsByColumn(graph, linear.bias, columns[0]))) {
    return false;
  }
  ASSIGN_OR_RETURN(other, AddReshape(graph, other, columns));
  if (scales) {
    ASSIGN_OR_RETURN(linear.inputs[1], AddWeight(graph, MulOp::kName, {}, {linear.inputs[1], other},
                                                 DType::kFloat32, matrix));
  }
  if (linear.bias != kNone) {
    ASSIGN_OR_RETURN(linear.bias,
                     AddWeight(graph, node.op, {}, {linear.bias, other}, DType::kFloat32, columns));
  } else if (!scales) {
    linear.bias = other;
  }
  linear.result = node.outputs[0];
  return true;
}

// y * sigmoid(y), where nothing else reads either.
ValueId SiluOf(const Graph& graph, ValueId y) {
  const std::vector<NodeId>& users = graph.value(y).users;
  if (users.size() != 2 || graph.IsOutput(y)) return kNone;
  for (int i = 0; i < 2; ++i) {
    const Node& sigmoid = graph.node(users[i]);
    const Node& mul = graph.node(users[1 - i]);
    if (sigmoid.op != SigmoidOp::kName || mul.op != MulOp::kName) continue;
    if (OnlyUser(graph, sigmoid.outputs[0]) != users[1 - i]) continue;
    return mul.outputs[0];
  }
  return kNone;
}

void AbsorbLinearActivation(const Graph& graph, Linear& linear) {
  if (const ValueId silu = SiluOf(graph, linear.result); silu != kNone) {
    linear.activation = "silu";
    linear.result = silu;
    return;
  }
  const NodeId user = OnlyUser(graph, linear.result);
  if (user == kNone) return;
  const Node& node = graph.node(user);
  if (node.op == GeluOp::kName) {
    linear.activation = GeluOp::From(node).ActivationName();
  } else if (node.op == QuickGeluOp::kName) {
    const float alpha = QuickGeluOp::From(node.attributes).alpha;
    if (alpha != 1 && alpha != ops::kQuickGeluAlpha) return;
    linear.activation = alpha == 1 ? "silu" : "quick_gelu";
  } else if (node.op == ReluOp::kName) {
    linear.activation = "relu";
  } else if (node.op == TanhOp::kName) {
    linear.activation = "tanh";
  } else if (node.op == SigmoidOp::kName) {
    linear.activation = "sigmoid";
  } else {
    return;
  }
  linear.result = node.outputs[0];
}

absl::StatusOr<bool> FuseLinearIn(Graph& graph) {
  bool changed = false;
  for (NodeId id : graph.NodeIds()) {
    ASSIGN_OR_RETURN(const bool replaced, ReplaceBatchNormOfRows(graph, id));
    changed = changed || replaced;
  }
  for (NodeId id : graph.NodeIds()) {
    if (graph.node(id).removed) continue;
    std::optional<Linear> linear = MatchProduct(graph, graph.node(id));
    if (!linear.has_value()) continue;
    linear->takes_factors = TakesFactors(graph, *linear);
    for (bool absorbed = true; absorbed;) {
      ASSIGN_OR_RETURN(absorbed, AbsorbByColumn(graph, *linear));
    }
    AbsorbLinearActivation(graph, *linear);
    if (linear->result == graph.node(id).outputs[0] && graph.node(id).op == linear->form->op) {
      continue;  // Nothing has joined it.
    }
    std::vector<ValueId> inputs = std::move(linear->inputs);
    if (linear->bias != kNone) {
      inputs.resize(linear->form->bias, kNone);
      inputs.push_back(linear->bias);
    }
    const std::string name = graph.node(id).name;
    ASSIGN_OR_RETURN(const ValueId fused, AddInferred(graph, linear->form->op, std::move(inputs),
                                                      {{"activation", linear->activation}}, name));
    Replace(graph, linear->result, fused);
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> FuseResidualAt(Graph& graph, NodeId id) {
  if (graph.node(id).op != AddOp::kName) return false;
  const std::vector<ValueId> inputs = graph.node(id).inputs;
  const ValueId sum = graph.node(id).outputs[0];
  // When both sides are products, the later one takes the sum: it waits for the other.
  for (int side = 1; side >= 0; --side) {
    const ValueId y = inputs[side];
    const ValueId residual = inputs[1 - side];
    const NodeId producer = ProducerOf(graph, y);
    if (producer == kNone || OnlyUser(graph, y) != id) continue;
    const Node* linear = &graph.node(producer);
    const ops::LinearForm* form = ops::LinearFormOf(linear->op);
    // As the only reader of the product, the Add is no input of the residual's nodes.
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
    return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Pass> FuseLinear() { return PassOf("fuse_linear", FuseLinearIn); }
std::unique_ptr<Pass> FuseResidual() { return PassOfNodes("fuse_residual", FuseResidualAt); }

}  // namespace reprise
