// A Conv of floats that were bytes by weights that are bytes becomes reprise.IntegerConv: exporters
// write it so, and QLinearConv becomes it. The nodes after it are left to fuse_conv.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/quantized/quantized_passes.h"

namespace reprise {
namespace {

// Groups of fewer maps are no products: each map reads channels of its own, and a kernel that goes
// over planes in place is faster than one that brings them together for so few. Each channel by
// itself is a form of its own.
constexpr int64_t kFewestMaps = 8;
// With fewer channels, one group does not fill a vector.
constexpr int64_t kFewestChannels = 16;
// Batch, channel and two more.
constexpr size_t kMostDims = 4;

// The inputs of a DequantizeLinear of bytes.
struct Dequantized {
  ParameterExprPtr values, scales, points;  // points null: 0
};

// Returns whether there is one factor, or one for each position along `axis`.
bool FitsAxis(const ParameterExprPtr& factors, const Shape& shape, int64_t axis,
              const Attributes& attributes) {
  if (factors == nullptr || NumElements(factors->shape()) == 1) return true;
  const auto along =
      NormalizeAxis(DequantizeLinearOp::From(attributes).axis, static_cast<int64_t>(shape.size()));
  return along.ok() && *along == axis && factors->shape() == Shape{shape[axis]};
}

// Weights whose factors belong to maps, dim 0.
std::optional<Dequantized> MatchWeights(const Graph& graph, ValueId value) {
  const ParameterExprPtr expr = graph.value(value).parameter;
  if (!IsParameter(graph, value) || expr == nullptr || expr->op() != DequantizeLinearOp::kName ||
      DequantizeLinearOp::From(expr->attributes()).block_size != 0) {
    return std::nullopt;
  }
  const auto& inputs = expr->inputs();
  if (inputs.size() < 2 || inputs[0] == nullptr || inputs[1] == nullptr ||
      !ops::IsByte(inputs[0]->dtype()) || inputs[1]->dtype() != DType::kFloat32) {
    return std::nullopt;
  }
  const Dequantized weights = {inputs[0], inputs[1], inputs.size() > 2 ? inputs[2] : nullptr};
  if (!FitsAxis(weights.scales, expr->shape(), 0, expr->attributes()) ||
      !FitsAxis(weights.points, expr->shape(), 0, expr->attributes())) {
    return std::nullopt;
  }
  return weights;
}

bool IsOneIfAny(const Graph& graph, ValueId value) {
  return value == kNone ||
         (ShapeOf(graph, value).has_value() && NumElements(*ShapeOf(graph, value)) == 1);
}

absl::StatusOr<bool> FuseIntegerConvAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // Adding nodes moves the others.
  if (node.op != ConvOp::kName || !IsFloat32(graph, node.outputs[0])) return false;
  const Node* x = graph.ProducerIf(node.inputs[ConvOp::kX], DequantizeLinearOp::kName);
  if (x == nullptr || !ops::IsByte(graph.value(x->inputs[DequantizeLinearOp::kX]).dtype) ||
      !IsFloat32(graph, x->inputs[DequantizeLinearOp::kScale]) ||
      !IsOneIfAny(graph, x->inputs[DequantizeLinearOp::kScale]) ||
      !IsOneIfAny(graph, x->input(DequantizeLinearOp::kZeroPoint))) {
    return false;
  }
  const std::optional<Dequantized> weights = MatchWeights(graph, node.inputs[ConvOp::kWeight]);
  if (!weights.has_value()) return false;
  const Shape& shape = weights->values->shape();
  if (shape.size() > kMostDims) return false;
  const int64_t groups = ConvOp::From(node.attributes).group;
  const bool by_channel = shape[1] == 1 && shape[0] == groups && groups >= kFewestChannels;
  if (shape[0] / groups < kFewestMaps && !by_channel) return false;
  std::vector<ValueId> inputs = {x->inputs[DequantizeLinearOp::kX],
                                 AddExpression(graph, weights->values),
                                 x->inputs[DequantizeLinearOp::kScale],
                                 AddExpression(graph, weights->scales),
                                 x->input(DequantizeLinearOp::kZeroPoint),
                                 AddExpression(graph, weights->points),
                                 node.input(ConvOp::kBias)};
  while (inputs.back() == kNone) inputs.pop_back();
  ASSIGN_OR_RETURN(const ValueId fused, AddInferred(graph, IntegerConvOp::kName, std::move(inputs),
                                                    node.attributes, node.name));
  Replace(graph, node.outputs[0], fused);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseIntegerConv() {
  return PassOfNodes("fuse_integer_conv", FuseIntegerConvAt);
}

}  // namespace reprise
