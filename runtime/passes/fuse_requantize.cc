// Steps of bytes that are all that is read of a reprise.IntegerConv become its result, and the sum
// of two dequantised values that is quantised again becomes a reprise.IntegerAdd, so that a chain
// of quantised nodes hands on bytes. A reprise.IntegerLinear keeps its floats: its few rows are
// quantised as fast by a pass of their own.
#include "runtime/base/status_macros.h"
#include "runtime/ops/quantize.h"
#include "runtime/passes/activation_match.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/quantized.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

// Of a reprise.IntegerConv: the scale of the result, in front of its zero point.
constexpr size_t kResultScale = 8;

// One scale for all of a value of bytes.
struct ByteScale {
  ValueId scale = kNone;
  ValueId zero = kNone;  // kNone: 0
  DType dtype = DType::kUndefined;
};

// Of a QuantizeLinear, a reprise.FakeQuantize or a DequantizeLinear; `dtype`: of its bytes.
std::optional<ByteScale> ScaleOf(const Graph& graph, const Node& node, DType dtype) {
  if (!ops::IsByte(dtype) || !IsFloat32(graph, node.inputs[1]) ||
      node.attributes.Int("block_size", 0) != 0 || !HasOneElement(graph, node.inputs[1])) {
    return std::nullopt;
  }
  return ByteScale{node.inputs[1], node.input(2), dtype};
}

std::optional<ByteScale> QuantisesTo(const Graph& graph, const Node& node) {
  if (node.op != "QuantizeLinear" && node.op != "reprise.FakeQuantize") return std::nullopt;
  const ValueId zero = node.input(2);
  const absl::StatusOr<DType> dtype =
      ops::QuantizedTypeOf(node, zero == kNone ? DType::kUndefined : graph.value(zero).dtype);
  if (!dtype.ok() || !IsFloat32(graph, node.inputs[0])) return std::nullopt;
  return ScaleOf(graph, node, *dtype);
}

ValueId ZeroPoint(Graph& graph, const ByteScale& scale) {
  if (scale.zero != kNone) return scale.zero;
  return graph.AddConstant(
      "", Tensor::Make(scale.dtype, {}, [](void* byte) { *static_cast<uint8_t*>(byte) = 0; }));
}

// `bytes` in place of what `node` made of floats.
absl::Status ReplaceSteps(Graph& graph, const Node& node, ValueId bytes) {
  ValueId result = bytes;
  if (node.op != "QuantizeLinear") {
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = bytes;
    ASSIGN_OR_RETURN(result, AddInferred(graph, "DequantizeLinear", std::move(inputs)));
  }
  Replace(graph, node.outputs[0], result);
  return absl::OkStatus();
}

// The steps of a convolution's result.
absl::StatusOr<bool> JoinConv(Graph& graph, const Node& node, const ByteScale& to) {
  const NodeId producer = ProducerOf(graph, node.inputs[0]);
  if (producer == kNone || OnlyUser(graph, node.inputs[0]) == kNone) return false;
  const Node conv = graph.node(producer);
  if (conv.op != "reprise.IntegerConv" || conv.input(kResultScale) != kNone) return false;
  std::vector<ValueId> inputs = conv.inputs;
  inputs.resize(kResultScale, kNone);
  inputs.push_back(to.scale);
  inputs.push_back(ZeroPoint(graph, to));
  ASSIGN_OR_RETURN(const ValueId bytes,
                   AddInferred(graph, conv.op, std::move(inputs), conv.attributes, conv.name));
  RETURN_IF_ERROR(ReplaceSteps(graph, node, bytes));
  return true;
}

// Where `value` comes from bytes with one scale: that of the DequantizeLinear, and in `bytes` them.
std::optional<ByteScale> Dequantised(const Graph& graph, ValueId value, ValueId& bytes) {
  const Node* node = graph.ProducerIf(value, "DequantizeLinear");
  if (node == nullptr || !IsFloat32(graph, value)) return std::nullopt;
  bytes = node->inputs[0];
  return ScaleOf(graph, *node, graph.value(bytes).dtype);
}

// The steps of a sum, with an activation in between or without.
absl::StatusOr<bool> JoinAdd(Graph& graph, const Node& node, const ByteScale& to) {
  ValueId value = node.inputs[0];
  Attributes attributes = NamedActivation("none");
  NodeId add = OnlyUser(graph, value) == kNone ? kNone : ProducerOf(graph, value);
  if (add == kNone) return false;
  if (const auto activation = ActivationOf(graph, graph.node(add)); activation.has_value()) {
    attributes = *activation;
    value = graph.node(add).inputs[0];
    add = OnlyUser(graph, value) == kNone ? kNone : ProducerOf(graph, value);
    if (add == kNone) return false;
  }
  if (graph.node(add).op != "Add" || !IsFloat32(graph, value)) return false;
  const std::vector<ValueId> sides = graph.node(add).inputs;
  if (!SameShape(graph, sides[0], sides[1])) return false;
  ValueId a, b;
  const auto from_a = Dequantised(graph, sides[0], a), from_b = Dequantised(graph, sides[1], b);
  if (!from_a.has_value() || !from_b.has_value()) return false;
  std::vector<ValueId> inputs = {a, b, from_a->scale, from_b->scale, to.scale};
  for (const ByteScale& scale : {*from_a, *from_b, to}) {
    inputs.push_back(ZeroPoint(graph, scale));
  }
  ASSIGN_OR_RETURN(const ValueId bytes, AddInferred(graph, "reprise.IntegerAdd", std::move(inputs),
                                                    std::move(attributes)));
  RETURN_IF_ERROR(ReplaceSteps(graph, node, bytes));
  return true;
}

class FuseRequantizePass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_requantize"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed) continue;
      const Node node = graph.node(id);  // Adding nodes moves the others.
      const std::optional<ByteScale> to = QuantisesTo(graph, node);
      if (!to.has_value()) continue;
      for (const auto join : {JoinConv, JoinAdd}) {
        ASSIGN_OR_RETURN(const bool joined, join(graph, node, *to));
        changed |= joined;
        if (joined) break;
      }
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> FuseRequantize() { return std::make_unique<FuseRequantizePass>(); }

}  // namespace reprise
