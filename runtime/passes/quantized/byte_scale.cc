#include "runtime/passes/quantized/byte_scale.h"

#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Scale of a QuantizeLinear, reprise.FakeQuantize or DequantizeLinear whose bytes are `dtype`.
std::optional<ByteScale> ScaleOf(const Graph& graph, const Node& node, DType dtype) {
  if (!ops::IsByte(dtype) || !IsFloat32(graph, node.inputs[QuantizeLinearOp::kScale]) ||
      QuantizeLinearOp::From(node.attributes).block_size != 0 ||
      !HasOneElement(graph, node.inputs[QuantizeLinearOp::kScale])) {
    return std::nullopt;
  }
  return ByteScale{node.inputs[QuantizeLinearOp::kScale], node.input(QuantizeLinearOp::kZeroPoint),
                   dtype};
}

}  // namespace

std::optional<ByteScale> QuantisesTo(const Graph& graph, const Node& node) {
  if (node.op != QuantizeLinearOp::kName && node.op != FakeQuantizeOp::kName) return std::nullopt;
  const ValueId zero = node.input(QuantizeLinearOp::kZeroPoint);
  const absl::StatusOr<DType> dtype =
      ops::QuantizedTypeOf(node, zero == kNone ? DType::kUndefined : graph.value(zero).dtype);
  if (!dtype.ok() || !IsFloat32(graph, node.inputs[QuantizeLinearOp::kX])) return std::nullopt;
  return ScaleOf(graph, node, *dtype);
}

std::optional<ByteScale> Dequantised(const Graph& graph, ValueId value, ValueId& bytes) {
  const Node* node = graph.ProducerIf(value, DequantizeLinearOp::kName);
  if (node == nullptr || !IsFloat32(graph, value)) return std::nullopt;
  const ValueId from = node->inputs[QuantizeLinearOp::kX];
  const std::optional<ByteScale> scale = ScaleOf(graph, *node, graph.value(from).dtype);
  if (scale.has_value()) bytes = from;
  return scale;
}

ValueId ZeroPoint(Graph& graph, const ByteScale& scale) {
  if (scale.zero != kNone) return scale.zero;
  return graph.AddConstant(
      "", Tensor::Make(scale.dtype, {}, [](void* byte) { *static_cast<uint8_t*>(byte) = 0; }));
}

bool KeepsOrder(const Graph& graph, const ByteScale& scale) {
  constexpr float kMostSteps = 512;
  const std::optional<double> known = KnownScalar(graph, scale.scale);
  return known.has_value() && *known > 0 &&
         *known <= std::numeric_limits<float>::max() / kMostSteps;
}

absl::Status ReplaceSteps(Graph& graph, const Node& node, ValueId bytes) {
  ValueId result = bytes;
  if (node.op != QuantizeLinearOp::kName) {
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = bytes;
    ASSIGN_OR_RETURN(result, AddInferred(graph, DequantizeLinearOp::kName, std::move(inputs)));
  }
  Replace(graph, node.outputs[0], result);
  return absl::OkStatus();
}

}  // namespace reprise
