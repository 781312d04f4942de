// Products of quantised rows with quantised weights, in the forms that exporters write, become
// reprise.IntegerLinear. fuse_linear handles bias, activation and residual after it. A
// QLinearMatMul whose right side is no weight becomes its steps.
#include "runtime/base/status_macros.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/ops/weights/quantized_weights.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/quantized/quantized_passes.h"

namespace reprise {
namespace {

// The operands of a reprise.IntegerLinear without the steps after the product.
struct Product {
  ValueId a = kNone, b = kNone;
  ValueId a_scale = kNone, b_scale = kNone;  // kNone: 1
  ValueId a_zero = kNone, b_zero = kNone;    // kNone: 0
  ValueId result = kNone;                    // which it takes the place of
};

bool IsBytes(const Graph& graph, ValueId value) {
  if (value == kNone || !ShapeOf(graph, value).has_value()) return false;
  return ops::IsByte(graph.value(value).dtype);
}

// Rows of bytes by a matrix of bytes that is a weight.
bool IsProduct(const Graph& graph, ValueId a, ValueId b) {
  return IsBytes(graph, a) && IsBytes(graph, b) && ShapeOf(graph, a)->size() >= 2 &&
         ShapeOf(graph, b)->size() == 2 && IsWeight(graph, b);
}

// `value` as a scale of the rows of `product`: one element, or one a row as the op takes it.
std::optional<ValueId> AsRows(const Graph& graph, ValueId value, ValueId product) {
  if (value == kNone || HasOneElement(graph, value)) return value;
  Shape rows = *ShapeOf(graph, product);
  rows.back() = 1;
  return HasShape(graph, value, rows) ? std::make_optional(value) : std::nullopt;
}

// Likewise one element, or one a column: a weight.
absl::StatusOr<std::optional<ValueId>> AsColumns(Graph& graph, ValueId value, int64_t columns) {
  if (value == kNone || HasOneElement(graph, value)) return std::make_optional(value);
  const Shape& shape = *ShapeOf(graph, value);
  if (!IsWeight(graph, value) || shape.back() != columns || NumElements(shape) != columns) {
    return std::optional<ValueId>();
  }
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, {columns}));
  return std::make_optional(value);
}

// Returns the factors of a scale: those that are multiplied where it is a product, else itself.
std::vector<ValueId> FactorsOf(const Graph& graph, ValueId factor) {
  const Node* mul = graph.ProducerIf(factor, MulOp::kName);
  if (mul == nullptr || mul->inputs[0] == mul->inputs[1]) return {factor};
  return mul->inputs;
}

// Takes a factor of the finished sums as a scale; false where there is no room for it.
absl::StatusOr<bool> TakeFactor(Graph& graph, ValueId factor, Product& product) {
  if (!IsFloat32(graph, factor)) return false;
  const ValueId result = product.result;
  const int64_t columns = ShapeOf(graph, result)->back();
  if (product.b_scale == kNone && IsWeight(graph, factor)) {
    ASSIGN_OR_RETURN(const auto scale, AsColumns(graph, factor, columns));
    if (scale.has_value()) product.b_scale = *scale;
    if (scale.has_value()) return true;
  }
  if (product.a_scale != kNone) return false;
  const std::optional<ValueId> scale = AsRows(graph, factor, result);
  if (!scale.has_value()) return false;
  product.a_scale = *scale;
  return true;
}

// Returns the Mul after the product as its scales; false where it is none.
absl::StatusOr<bool> TakeMul(Graph& graph, Product& product) {
  const NodeId user = OnlyUser(graph, product.result);
  if (user == kNone || graph.node(user).op != MulOp::kName) return false;
  const ValueId factor = OtherInput(graph.node(user), product.result);
  const ValueId scaled = graph.node(user).outputs[0];
  if (factor == kNone || !SameShape(graph, scaled, product.result)) return false;
  Product taken = product;
  for (const ValueId each : FactorsOf(graph, factor)) {
    ASSIGN_OR_RETURN(const bool fits, TakeFactor(graph, each, taken));
    if (!fits) return false;
  }
  taken.result = scaled;
  product = taken;
  return true;
}

// Returns no zero point for one that is known to be 0.
ValueId UnlessZero(const Graph& graph, ValueId point) {
  const Tensor* known = KnownConstant(graph, point);
  if (known == nullptr) return point;
  return AllElements(*known, [](double value) { return value == 0; }) ? kNone : point;
}

// Takes zero points in the op's form; returns false where they have another form.
absl::StatusOr<bool> TakeZeroPoints(Graph& graph, ValueId a_zero, ValueId b_zero, ValueId shaped,
                                    Product& product) {
  a_zero = UnlessZero(graph, a_zero);
  // Zero points of rows have one dim in ONNX, where there is one matrix.
  const Shape shape = *ShapeOf(graph, shaped);
  if (a_zero != kNone && shape.size() == 2 && HasShape(graph, a_zero, {shape[0]})) {
    ASSIGN_OR_RETURN(a_zero, AddReshape(graph, a_zero, {shape[0], 1}));
  }
  const std::optional<ValueId> rows = AsRows(graph, a_zero, shaped);
  ASSIGN_OR_RETURN(const auto columns,
                   AsColumns(graph, UnlessZero(graph, b_zero), ShapeOf(graph, shaped)->back()));
  if (!rows.has_value() || !columns.has_value()) return false;
  product.a_zero = *rows;
  product.b_zero = *columns;
  return true;
}

// MatMulInteger, Cast, and a Mul or two by the scales.
absl::StatusOr<std::optional<Product>> MatchInteger(Graph& graph, const Node& node) {
  if (!IsProduct(graph, node.inputs[MatMulIntegerOp::kA], node.inputs[MatMulIntegerOp::kB]))
    return std::optional<Product>();
  const NodeId cast = OnlyUser(graph, node.outputs[0]);
  if (cast == kNone || graph.node(cast).op != CastOp::kName) return std::optional<Product>();
  Product product = {.a = node.inputs[MatMulIntegerOp::kA], .b = node.inputs[MatMulIntegerOp::kB]};
  product.result = graph.node(cast).outputs[0];
  if (!IsFloat32(graph, product.result)) return std::optional<Product>();
  ASSIGN_OR_RETURN(const bool points,
                   TakeZeroPoints(graph, node.input(MatMulIntegerOp::kAZero),
                                  node.input(MatMulIntegerOp::kBZero), node.outputs[0], product));
  if (!points) return std::optional<Product>();
  for (int muls = 0; muls < 2; ++muls) {
    ASSIGN_OR_RETURN(const bool taken, TakeMul(graph, product));
    if (!taken) break;
  }
  return std::make_optional(product);
}

// MatMul of floats that were bytes, one scale for all, by weights that are.
absl::StatusOr<std::optional<Product>> MatchDequantized(Graph& graph, const Node& node) {
  const Node* a = graph.ProducerIf(node.inputs[0], DequantizeLinearOp::kName);
  if (a == nullptr || !IsFloat32(graph, node.outputs[0]) || !IsParameter(graph, node.inputs[1]) ||
      !IsBytes(graph, a->inputs[DequantizeLinearOp::kX]) ||
      !IsFloat32(graph, a->inputs[DequantizeLinearOp::kScale]) ||
      !HasOneElement(graph, a->inputs[DequantizeLinearOp::kScale]) ||
      ShapeOf(graph, a->inputs[DequantizeLinearOp::kX])->size() < 2) {
    return std::optional<Product>();
  }
  const std::optional<ops::QuantizedWeights> weights =
      ops::SplitQuantized(graph.value(node.inputs[1]).parameter, /*axis=*/1);
  if (!weights.has_value()) return std::optional<Product>();
  Product product = {.a = a->inputs[DequantizeLinearOp::kX],
                     .a_scale = a->inputs[DequantizeLinearOp::kScale],
                     .result = node.outputs[0]};
  const ValueId a_zero = UnlessZero(graph, a->input(DequantizeLinearOp::kZeroPoint));
  product.a_zero = a_zero;
  product.b = AddExpression(graph, weights->values);
  product.b_scale = AddExpression(graph, weights->scales);
  product.b_zero = AddExpression(graph, weights->points);
  return std::make_optional(product);
}

// Inputs: a, its scale and zero point, b, its scale and zero points, the result's scale and zero
// point.
absl::StatusOr<std::optional<Product>> MatchQuantizing(Graph& graph, const Node& node) {
  if (!IsProduct(graph, node.inputs[QLinearMatMulOp::kA], node.inputs[QLinearMatMulOp::kB]))
    return std::optional<Product>();
  for (const size_t i : {1, 4, 6}) {
    if (!IsFloat32(graph, node.inputs[i])) return std::optional<Product>();
  }
  const ValueId result = node.outputs[0];
  Product product = {.a = node.inputs[QLinearMatMulOp::kA],
                     .b = node.inputs[QLinearMatMulOp::kB],
                     .result = result};
  ASSIGN_OR_RETURN(const bool points,
                   TakeZeroPoints(graph, node.inputs[QLinearMatMulOp::kAZero],
                                  node.inputs[QLinearMatMulOp::kBZero], result, product));
  if (!points || !HasOneElement(graph, node.inputs[QLinearMatMulOp::kAScale]))
    return std::optional<Product>();
  product.a_scale = node.inputs[QLinearMatMulOp::kAScale];
  ASSIGN_OR_RETURN(const auto scale, AsColumns(graph, node.inputs[QLinearMatMulOp::kBScale],
                                               ShapeOf(graph, result)->back()));
  if (!scale.has_value()) return std::optional<Product>();
  product.b_scale = *scale;
  return std::make_optional(product);
}

// Returns the same where the right side is no weight: the product of integers, its scales, and the
// result quantised. kNone for scales of rows.
absl::StatusOr<ValueId> QuantizingInSteps(Graph& graph, const Node& node) {
  for (const size_t i : {1, 4, 6}) {
    if (!IsFloat32(graph, node.inputs[i])) return kNone;
  }
  const int64_t columns = ShapeOf(graph, node.outputs[0])->back();
  const ValueId scales = node.inputs[QLinearMatMulOp::kBScale];
  if (!HasOneElement(graph, node.inputs[QLinearMatMulOp::kAScale]) ||
      (!HasOneElement(graph, scales) && !HasShape(graph, scales, {columns}))) {
    return kNone;
  }
  ASSIGN_OR_RETURN(
      ValueId value,
      AddInferred(graph, MatMulIntegerOp::kName,
                  {node.inputs[QLinearMatMulOp::kA], node.inputs[QLinearMatMulOp::kB],
                   node.inputs[QLinearMatMulOp::kAZero], node.inputs[QLinearMatMulOp::kBZero]},
                  {}, node.name));
  ASSIGN_OR_RETURN(
      const ValueId scale,
      AddInferred(graph, MulOp::kName, {node.inputs[QLinearMatMulOp::kAScale], scales}));
  ASSIGN_OR_RETURN(value, AddInferred(graph, DequantizeLinearOp::kName, {value, scale},
                                      {{"axis", int64_t{-1}}}));
  return AddInferred(
      graph, QuantizeLinearOp::kName,
      {value, node.inputs[QLinearMatMulOp::kYScale], node.inputs[QLinearMatMulOp::kYZero]});
}

absl::StatusOr<ValueId> AddProduct(Graph& graph, const Product& product, const std::string& name) {
  const auto scale = [&](ValueId value) {
    return value != kNone ? value : graph.AddConstant("", Tensor::FloatScalar(1));
  };
  std::vector<ValueId> inputs = {product.a, product.b, scale(product.a_scale),
                                 scale(product.b_scale)};
  if (product.a_zero != kNone || product.b_zero != kNone) inputs.push_back(product.a_zero);
  if (product.b_zero != kNone) inputs.push_back(product.b_zero);
  return AddInferred(graph, IntegerLinearOp::kName, std::move(inputs),
                     {{"activation", std::string("none")}}, name);
}

absl::StatusOr<bool> FuseIntegerLinearAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // Matching may add nodes, which moves the others.
  std::optional<Product> product;
  if (node.op == MatMulIntegerOp::kName) {
    ASSIGN_OR_RETURN(product, MatchInteger(graph, node));
  } else if (node.op == MatMulOp::kName) {
    ASSIGN_OR_RETURN(product, MatchDequantized(graph, node));
  } else if (node.op == QLinearMatMulOp::kName) {
    ASSIGN_OR_RETURN(product, MatchQuantizing(graph, node));
    if (!product.has_value()) {
      ASSIGN_OR_RETURN(const ValueId steps, QuantizingInSteps(graph, node));
      if (steps != kNone) Replace(graph, node.outputs[0], steps);
      return steps != kNone;
    }
  }
  if (!product.has_value()) return false;
  ASSIGN_OR_RETURN(ValueId fused, AddProduct(graph, *product, node.name));
  if (node.op == QLinearMatMulOp::kName) {
    ASSIGN_OR_RETURN(fused, AddInferred(graph, QuantizeLinearOp::kName,
                                        {fused, node.inputs[QLinearMatMulOp::kYScale],
                                         node.inputs[QLinearMatMulOp::kYZero]}));
  }
  Replace(graph, product->result, fused);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseIntegerLinear() {
  return PassOfNodes("fuse_integer_linear", FuseIntegerLinearAt);
}

}  // namespace reprise
