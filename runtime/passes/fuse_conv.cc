// What follows a Conv or ConvTranspose over float32 joins it, in this order: a BatchNormalization
// goes into its weights and bias; of a Conv the sum with another value of its shape, and an
// activation are applied to the results while they lie in the cache: reprise.Conv,
// reprise.ConvTranspose. Behind a reprise.IntegerConv these two do so, too. A BatchNormalization
// that no convolution takes becomes one, of each map with one tap.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/activation_match.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

struct Conv {
  ValueId weight = kNone;
  ValueId bias = kNone;      // kNone: none
  ValueId residual = kNone;  // kNone: none
  ValueId result = kNone;
  Attributes attributes;
  bool transposed = false;
  bool changed = false;

  // Of the weight: where its maps are.
  size_t map_dim() const { return transposed ? 1 : 0; }
  ValueId sum(ValueId value) {
    changed = true;
    return result = value;
  }
};

// A BatchNormalization of maps to which `bias` was added (kNone: none): each is multiplied by its
// factor, and gets this bias.
struct BatchNorm {
  ValueId factor, bias;  // weights [maps]
};

// factor = scale / sqrt(variance + epsilon), bias' = (bias - mean) * factor + shift; nullopt where
// one of them is data.
absl::StatusOr<std::optional<BatchNorm>> BatchNormOf(Graph& graph, NodeId id, ValueId bias) {
  const Node& node = graph.node(id);
  const std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!IsWeight(graph, inputs[i]) || !IsFloat32(graph, inputs[i])) return std::nullopt;
  }
  if (bias != kNone && (!IsWeight(graph, bias) || !IsFloat32(graph, bias))) return std::nullopt;
  const Shape maps = *ShapeOf(graph, inputs[1]);
  const auto apply = [&](absl::string_view op, std::vector<ValueId> operands) {
    return AddWeight(graph, op, {}, operands, DType::kFloat32, maps);
  };
  const float plus = node.attributes.Float("epsilon", 1e-5f);
  const ValueId epsilon =
      graph.AddConstant("", Tensor::FromVector<float>(DType::kFloat32, {1}, {plus}));
  const ValueId scale = inputs[1], shift = inputs[2], mean = inputs[3], variance = inputs[4];
  ASSIGN_OR_RETURN(ValueId factor, apply("Add", {variance, epsilon}));
  ASSIGN_OR_RETURN(factor, apply("Sqrt", {factor}));
  ASSIGN_OR_RETURN(factor, apply("Div", {scale, factor}));
  if (bias == kNone) {
    ASSIGN_OR_RETURN(bias, apply("Neg", {mean}));
  } else {
    ASSIGN_OR_RETURN(bias, apply("Sub", {bias, mean}));
  }
  ASSIGN_OR_RETURN(bias, apply("Mul", {bias, factor}));
  ASSIGN_OR_RETURN(bias, apply("Add", {bias, shift}));
  return BatchNorm{factor, bias};
}

absl::Status AbsorbBatchNorm(Graph& graph, Conv& conv) {
  const NodeId user = OnlyUser(graph, conv.result);
  if (user == kNone || graph.node(user).op != "BatchNormalization" ||
      graph.node(user).inputs[0] != conv.result) {
    return absl::OkStatus();
  }
  if (!IsWeight(graph, conv.weight) || !IsFloat32(graph, conv.weight)) return absl::OkStatus();
  const Shape shape = *ShapeOf(graph, conv.weight);
  // Of several groups no dim of a transposed weight is that of all maps.
  if (conv.transposed && conv.attributes.Int("group", 1) != 1) return absl::OkStatus();
  const ValueId result = graph.node(user).outputs[0];
  ASSIGN_OR_RETURN(const std::optional<BatchNorm> norm, BatchNormOf(graph, user, conv.bias));
  if (!norm.has_value()) return absl::OkStatus();
  conv.bias = norm->bias;
  Shape by_map(shape.size(), 1);
  by_map[conv.map_dim()] = shape[conv.map_dim()];
  ASSIGN_OR_RETURN(const ValueId factor, AddReshape(graph, norm->factor, by_map));
  ASSIGN_OR_RETURN(conv.weight,
                   AddWeight(graph, "Mul", {}, {conv.weight, factor}, DType::kFloat32, shape));
  conv.sum(result);
  return absl::OkStatus();
}

void AbsorbResidual(const Graph& graph, Conv& conv) {
  const NodeId user = OnlyUser(graph, conv.result);
  if (user == kNone || graph.node(user).op != "Add") return;
  // Alone in reading the convolution, the Add is no input of what makes the residual.
  const ValueId residual = OtherInput(graph.node(user), conv.result);
  const ValueId sum = graph.node(user).outputs[0];
  if (residual == kNone || IsWeight(graph, residual) || !IsFloat32(graph, residual) ||
      !SameShape(graph, residual, conv.result) || !SameShape(graph, sum, conv.result)) {
    return;
  }
  conv.residual = residual;
  conv.sum(sum);
}

// y * gate(y), where nothing else reads either; the gate, and in `product` the result.
const Node* GateOf(const Graph& graph, ValueId y, ValueId& product) {
  const std::vector<NodeId>& users = graph.value(y).users;
  if (users.size() != 2 || graph.IsOutput(y)) return nullptr;
  for (int i = 0; i < 2; ++i) {
    const Node& gate = graph.node(users[i]);
    const Node& mul = graph.node(users[1 - i]);
    if (mul.op != "Mul" || gate.inputs.size() != 1) continue;
    if (OnlyUser(graph, gate.outputs[0]) != users[1 - i]) continue;
    product = mul.outputs[0];
    return &gate;
  }
  return nullptr;
}

bool IsHardSwishGate(const Node& node) {
  return node.op == "HardSigmoid" && IsNear(node.attributes.Float("alpha", 0.2f), 1.0 / 6) &&
         IsNear(node.attributes.Float("beta", 0.5f), 0.5);
}

void AbsorbActivation(const Graph& graph, Conv& conv) {
  ValueId result = kNone;
  std::optional<Attributes> activation;
  if (const Node* gate = GateOf(graph, conv.result, result); gate != nullptr) {
    if (gate->op == "Sigmoid") activation = NamedActivation("silu");
    if (IsHardSwishGate(*gate)) activation = NamedActivation("hard_swish");
  } else if (const NodeId user = OnlyUser(graph, conv.result); user != kNone) {
    activation = ActivationOf(graph, graph.node(user));
    result = graph.node(user).outputs[0];
  }
  if (!activation.has_value()) return;
  for (const auto& [name, value] : *activation) conv.attributes.Set(name, value);
  conv.sum(result);
}

class FuseConvPass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_conv"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    // Of two convolutions the later one waits for the other.
    std::vector<NodeId> ids = graph.NodeIds();
    std::reverse(ids.begin(), ids.end());
    for (NodeId id : ids) {
      const Node node = graph.node(id);
      const bool transposed = node.op == "ConvTranspose",
                 integer = node.op == "reprise.IntegerConv";
      if (node.removed || (node.op != "Conv" && !transposed && !integer) ||
          !IsFloat32(graph, node.outputs[0])) {
        continue;
      }
      Conv conv{.weight = node.inputs[1],
                .bias = node.input(integer ? 6 : 2),
                .result = node.outputs[0],
                .attributes = node.attributes,
                .transposed = transposed};
      // Quantised weights are multiplied as they are.
      if (!integer) RETURN_IF_ERROR(AbsorbBatchNorm(graph, conv));
      if (!transposed) AbsorbResidual(graph, conv);
      AbsorbActivation(graph, conv);
      if (!conv.changed) continue;
      std::vector<ValueId> inputs = {node.inputs[0], conv.weight};
      for (size_t i = 2; integer && i < 6; ++i) inputs.push_back(node.input(i));
      inputs.insert(inputs.end(), {conv.bias, conv.residual});
      while (inputs.back() == kNone) inputs.pop_back();
      const std::string op = integer ? node.op : absl::StrCat("reprise.", node.op);
      ASSIGN_OR_RETURN(const ValueId fused,
                       AddInferred(graph, op, std::move(inputs), conv.attributes, node.name));
      Replace(graph, conv.result, fused);
      changed = true;
    }
    for (NodeId id : graph.NodeIds()) {
      ASSIGN_OR_RETURN(const bool replaced, ReplaceBatchNorm(graph, id));
      changed = changed || replaced;
    }
    return changed;
  }

 private:
  // A BatchNormalization that joined none is a convolution of each map with one tap, or of rows
  // without positions a product and a sum.
  static absl::StatusOr<bool> ReplaceBatchNorm(Graph& graph, NodeId id) {
    const Node node = graph.node(id);  // A copy: adding nodes moves them.
    if (node.removed || node.op != "BatchNormalization" || !IsFloat32(graph, node.inputs[0])) {
      return false;
    }
    ASSIGN_OR_RETURN(const std::optional<BatchNorm> norm, BatchNormOf(graph, id, kNone));
    const ValueId x = node.inputs[0];
    const Shape shape = *ShapeOf(graph, x);
    // No window fits into an empty dim.
    if (!norm.has_value() || shape.size() < 2 || NumElements(shape) == 0) return false;
    if (shape.size() == 2) {
      ASSIGN_OR_RETURN(ValueId y, AddInferred(graph, "Mul", {x, norm->factor}));
      ASSIGN_OR_RETURN(y, AddInferred(graph, "Add", {y, norm->bias}, {}, node.name));
      Replace(graph, node.outputs[0], y);
      return true;
    }
    Shape taps(shape.size(), 1);
    taps[0] = shape[1];
    Conv conv{.bias = norm->bias, .result = node.outputs[0]};
    ASSIGN_OR_RETURN(conv.weight, AddReshape(graph, norm->factor, taps));
    conv.attributes.Set("group", shape[1]);
    AbsorbResidual(graph, conv);
    AbsorbActivation(graph, conv);
    std::vector<ValueId> inputs = {x, conv.weight, conv.bias};
    if (conv.residual != kNone) inputs.push_back(conv.residual);
    ASSIGN_OR_RETURN(const ValueId y, AddInferred(graph, "reprise.Conv", std::move(inputs),
                                                  conv.attributes, node.name));
    Replace(graph, conv.result, y);
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> FuseConv() { return std::make_unique<FuseConvPass>(); }

}  // namespace reprise
