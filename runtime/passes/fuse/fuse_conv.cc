// Nodes around a float32 Conv or ConvTranspose join it, in this order. Zeros that a Pad puts around
// the planes become padding of a Conv. BatchNormalizations, and products and sums with a constant
// per channel, go into weights and bias. The sum of a Conv with another value of its shape, and an
// activation, are applied to results in the cache: reprise.Conv, reprise.ConvTranspose; sum and
// activation also join a reprise.IntegerConv. A BatchNormalization that no convolution takes
// becomes a depthwise convolution with one tap.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/activation_match.h"
#include "runtime/passes/match/batch_norm.h"

namespace reprise {
namespace {

struct Conv {
  ValueId input = kNone;
  ValueId weight = kNone;
  ValueId bias = kNone;      // kNone: none
  ValueId residual = kNone;  // kNone: none
  ValueId result = kNone;
  Attributes attributes;
  bool transposed = false;
  bool changed = false;

  // Returns the dim of the weight that counts the maps.
  size_t map_dim() const { return transposed ? 1 : 0; }
  ValueId sum(ValueId value) {
    changed = true;
    return result = value;
  }
};

// Returns whether products with the weights of `conv` are those with its results.
bool HasWeightsByMap(const Graph& graph, const Conv& conv) {
  // With several groups, no dim of a transposed weight counts all maps.
  return IsWeight(graph, conv.weight) && IsFloat32(graph, conv.weight) &&
         (!conv.transposed || ConvOp::From(conv.attributes).group == 1);
}

// `op` of the weights and `of_map`, a weight [maps] or [1].
absl::Status ApplyToWeights(Graph& graph, Conv& conv, absl::string_view op, ValueId of_map) {
  const Shape shape = *ShapeOf(graph, conv.weight);
  Shape by_map(shape.size(), 1);
  by_map[conv.map_dim()] = NumElements(*ShapeOf(graph, of_map));
  ASSIGN_OR_RETURN(of_map, AddReshape(graph, of_map, by_map));
  ASSIGN_OR_RETURN(conv.weight,
                   AddWeight(graph, op, {}, {conv.weight, of_map}, DType::kFloat32, shape));
  return absl::OkStatus();
}

absl::StatusOr<bool> AbsorbBatchNorm(Graph& graph, Conv& conv) {
  const NodeId user = OnlyUser(graph, conv.result);
  if (user == kNone || graph.node(user).op != BatchNormalizationOp::kName ||
      graph.node(user).inputs[0] != conv.result || !HasWeightsByMap(graph, conv)) {
    return false;
  }
  const ValueId result = graph.node(user).outputs[0];
  ASSIGN_OR_RETURN(const std::optional<BatchNorm> norm, BatchNormOf(graph, user, conv.bias));
  if (!norm.has_value()) return false;
  conv.bias = norm->bias;
  RETURN_IF_ERROR(ApplyToWeights(graph, conv, MulOp::kName, norm->factor));
  conv.sum(result);
  return true;
}

// Returns the float32 weight `value` as [maps] or [1], where it has one element for each map of
// `result`, [rows, maps, positions...], or one for all; kNone otherwise.
absl::StatusOr<ValueId> OneEachMap(Graph& graph, ValueId value, ValueId result) {
  if (!IsWeight(graph, value) || !IsFloat32(graph, value)) return kNone;
  const Shape shape = *ShapeOf(graph, value), whole = *ShapeOf(graph, result);
  const int64_t count = NumElements(shape);
  const size_t behind = whole.size() - 2;
  const bool by_map =
      shape.size() > behind && count == whole[1] && shape[shape.size() - 1 - behind] == count;
  if (shape.size() > whole.size() || (count != 1 && !by_map)) return kNone;
  return AddReshape(graph, value, {count});
}

// Absorbs a product with, quotient by, sum with or difference to a constant of each map.
absl::StatusOr<bool> AbsorbByMap(Graph& graph, Conv& conv) {
  const NodeId user = OnlyUser(graph, conv.result);
  if (user == kNone) return false;
  const Node node = graph.node(user);  // A copy: adding nodes moves them.
  const bool scales = node.op == MulOp::kName || node.op == DivOp::kName;
  if (!scales && node.op != AddOp::kName && node.op != SubOp::kName) return false;
  const bool commutes = node.op == MulOp::kName || node.op == AddOp::kName;
  if ((!commutes && node.inputs[0] != conv.result) || !HasWeightsByMap(graph, conv) ||
      (conv.bias != kNone && (!IsWeight(graph, conv.bias) || !IsFloat32(graph, conv.bias)))) {
    return false;
  }
  const ValueId other = OtherInput(node, conv.result);
  if (other == kNone || !SameShape(graph, node.outputs[0], conv.result)) return false;
  ASSIGN_OR_RETURN(const ValueId of_map, OneEachMap(graph, other, conv.result));
  if (of_map == kNone) return false;
  const Shape maps = {(*ShapeOf(graph, conv.result))[1]};
  if (scales) RETURN_IF_ERROR(ApplyToWeights(graph, conv, node.op, of_map));
  if (conv.bias == kNone && !scales) {
    conv.bias = graph.AddConstant(
        "", Tensor::FromVector<float>(DType::kFloat32, maps, std::vector<float>(maps[0], 0.0f)));
  }
  if (conv.bias != kNone) {
    ASSIGN_OR_RETURN(conv.bias,
                     AddWeight(graph, node.op, {}, {conv.bias, of_map}, DType::kFloat32, maps));
  }
  conv.sum(node.outputs[0]);
  return true;
}

// Zeros around the planes that `conv` reads.
absl::Status AbsorbPad(const Graph& graph, Conv& conv) {
  const Node* pad = graph.ProducerIf(conv.input, "Pad");
  if (pad == nullptr) return absl::OkStatus();
  const std::string auto_pad = conv.attributes.String("auto_pad", "NOTSET");
  if (pad->attributes.String("mode", "constant") != "constant" || pad->input(3) != kNone ||
      (auto_pad != "NOTSET" && auto_pad != "VALID")) {
    return absl::OkStatus();
  }
  if (pad->input(2) != kNone && !IsScalar(graph, pad->input(2), 0)) return absl::OkStatus();
  const Tensor* given = KnownConstant(graph, pad->input(1));
  const size_t dims = ShapeOf(graph, conv.input)->size();
  if (given == nullptr || given->shape() != Shape{static_cast<int64_t>(2 * dims)})
    return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> around, given->ToInt64s());
  for (size_t i = 0; i < 2 * dims; ++i) {
    if (around[i] < 0 || (i % dims < 2 && around[i] != 0)) return absl::OkStatus();
  }
  std::vector<int64_t> pads = conv.attributes.Ints("pads", std::vector<int64_t>(2 * (dims - 2), 0));
  if (auto_pad == "VALID") pads.assign(2 * (dims - 2), 0);
  for (size_t i = 0; i < dims - 2; ++i) {
    pads[i] += around[i + 2];
    pads[i + dims - 2] += around[i + dims + 2];
  }
  conv.attributes.Set("pads", pads);
  conv.attributes.Set("auto_pad", std::string("NOTSET"));
  conv.input = pad->inputs[0];
  conv.changed = true;
  return absl::OkStatus();
}

void AbsorbResidual(const Graph& graph, Conv& conv) {
  const NodeId user = OnlyUser(graph, conv.result);
  if (user == kNone || graph.node(user).op != AddOp::kName) return;
  // As the only reader of the convolution, the Add is no input of the residual's nodes.
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
    if (mul.op != MulOp::kName || gate.inputs.size() != 1) continue;
    if (OnlyUser(graph, gate.outputs[0]) != users[1 - i]) continue;
    product = mul.outputs[0];
    return &gate;
  }
  return nullptr;
}

bool IsHardSwishGate(const Node& node) {
  return node.op == HardSigmoidOp::kName && IsNear(node.attributes.Float("alpha", 0.2f), 1.0 / 6) &&
         IsNear(node.attributes.Float("beta", 0.5f), 0.5);
}

void AbsorbConvActivation(const Graph& graph, Conv& conv) {
  ValueId result = kNone;
  std::optional<Attributes> activation;
  if (const Node* gate = GateOf(graph, conv.result, result); gate != nullptr) {
    if (gate->op == SigmoidOp::kName) activation = NamedActivation("silu");
    if (IsHardSwishGate(*gate)) activation = NamedActivation("hard_swish");
  } else if (const NodeId user = OnlyUser(graph, conv.result); user != kNone) {
    activation = ActivationOf(graph, graph.node(user));
    result = graph.node(user).outputs[0];
  }
  if (!activation.has_value()) return;
  for (const auto& [name, value] : *activation) conv.attributes.Set(name, value);
  conv.sum(result);
}

// Replaces a BatchNormalization that joined none: it is a convolution of each map with one tap.
absl::StatusOr<bool> ReplaceBatchNorm(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // A copy: adding nodes moves them.
  if (node.removed || node.op != BatchNormalizationOp::kName || !IsFloat32(graph, node.inputs[0])) {
    return false;
  }
  ASSIGN_OR_RETURN(const std::optional<BatchNorm> norm, BatchNormOf(graph, id, kNone));
  const ValueId x = node.inputs[0];
  const Shape shape = *ShapeOf(graph, x);
  // No window fits into an empty dim.
  if (!norm.has_value() || shape.size() < 3 || NumElements(shape) == 0) return false;
  Shape taps(shape.size(), 1);
  taps[0] = shape[1];
  Conv conv{.bias = norm->bias, .result = node.outputs[0]};
  ASSIGN_OR_RETURN(conv.weight, AddReshape(graph, norm->factor, taps));
  conv.attributes.Set("group", shape[1]);
  AbsorbResidual(graph, conv);
  AbsorbConvActivation(graph, conv);
  std::vector<ValueId> inputs = {x, conv.weight, conv.bias};
  if (conv.residual != kNone) inputs.push_back(conv.residual);
  ASSIGN_OR_RETURN(const ValueId y, AddInferred(graph, FusedConvOp::kName, std::move(inputs),
                                                conv.attributes, node.name));
  Replace(graph, conv.result, y);
  return true;
}

absl::StatusOr<bool> FuseConvIn(Graph& graph) {
  bool changed = false;
  // A convolution that adds another's result waits for it: the later one takes the sum.
  std::vector<NodeId> ids = graph.NodeIds();
  std::reverse(ids.begin(), ids.end());
  for (NodeId id : ids) {
    const Node node = graph.node(id);
    const bool transposed = node.op == ConvTransposeOp::kName,
               integer = node.op == IntegerConvOp::kName;
    if (node.removed || (node.op != ConvOp::kName && !transposed && !integer) ||
        !IsFloat32(graph, node.outputs[0])) {
      continue;
    }
    Conv conv{.input = node.inputs[0],
              .weight = node.inputs[1],
              .bias = node.input(integer ? 6 : 2),
              .result = node.outputs[0],
              .attributes = node.attributes,
              .transposed = transposed};
    // Quantised weights are multiplied as they are.
    for (bool absorbed = !integer; absorbed;) {
      ASSIGN_OR_RETURN(absorbed, AbsorbBatchNorm(graph, conv));
      if (absorbed) continue;
      ASSIGN_OR_RETURN(absorbed, AbsorbByMap(graph, conv));
    }
    if (!integer && !transposed) RETURN_IF_ERROR(AbsorbPad(graph, conv));
    if (!transposed) AbsorbResidual(graph, conv);
    AbsorbConvActivation(graph, conv);
    if (!conv.changed) continue;
    std::vector<ValueId> inputs = {conv.input, conv.weight};
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

}  // namespace

std::unique_ptr<Pass> FuseConv() { return PassOf("fuse_conv", FuseConvIn); }

}  // namespace reprise
