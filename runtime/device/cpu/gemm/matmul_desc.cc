#include "runtime/device/cpu/gemm/matmul_desc.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"

namespace reprise::cpu {
namespace {

std::optional<Activation> ActivationOf(absl::string_view name) {
  constexpr std::pair<absl::string_view, Activation> kNames[] = {
      {"none", Activation::kNone},
      {"relu", Activation::kRelu},
      {"gelu", Activation::kGelu},
      {"gelu_tanh", Activation::kGeluTanh},
      {"tanh", Activation::kTanh},
      {"sigmoid", Activation::kSigmoid},
      {"silu", Activation::kSilu},
      {"quick_gelu", Activation::kQuickGelu},
      {"gelu_doubled", Activation::kGeluDoubled},
      {"gelu_tanh_doubled", Activation::kGeluTanhDoubled}};
  for (const auto& [known, activation] : kNames) {
    if (name == known) return activation;
  }
  return std::nullopt;
}

// Sets the fields that all products of `node` share; a and b are its first two inputs.
Product ProductOf(const NodeView& node) {
  Product product;
  product.dtype = node.out_dtype();
  product.out = static_cast<int>(node.num_inputs());
  product.batch_rows = node.batch_rows();
  product.weights = node.is_parameter(1) && node.rank(1) == 2;
  return product;
}

// x [..., k] times a matrix [k, n], or [n, k] where it is `transposed`.
Product FlatProduct(const NodeView& node, bool transposed = false) {
  Product product = ProductOf(node);
  product.transposed_b = transposed;
  product.k = node.shape(1)[transposed ? 1 : 0];
  product.n = node.shape(1)[transposed ? 0 : 1];
  product.m = product.n == 0 ? 0 : NumElements(node.out_shape()) / product.n;
  return product;
}

// Returns the same with an activation; `bias` and `residual` are the numbers of these inputs.
std::optional<Product> ProductWithEpilogue(const NodeView& node, int bias, int residual) {
  Product product = FlatProduct(node);
  product.activation_name = LinearOp::From(node.attributes()).activation;
  const std::optional<Activation> activation = ActivationOf(product.activation_name);
  if (!activation.has_value()) return std::nullopt;
  product.activation = *activation;
  if (node.has_input(static_cast<size_t>(bias))) {
    product.addend = bias;
    product.addend_column_step = 1;
  }
  if (node.has_input(static_cast<size_t>(residual))) product.residual = residual;
  return product;
}

}  // namespace

std::string Product::Detail() const {
  const auto shape = [](int64_t rows, int64_t columns, bool transposed) {
    return absl::StrCat("[", rows, ", ", columns, "]", transposed ? " (transposed)" : "");
  };
  return absl::StrCat(stack == 1 ? "" : absl::StrCat(stack, " x "), shape(m, k, transposed_a),
                      " x ", shape(k, n, transposed_b),
                      addend == kNoOperand ? "" : (has_matrix_addend() ? " + matrix" : " + bias"),
                      activation == Activation::kNone ? "" : absl::StrCat(", ", activation_name),
                      residual == kNoOperand ? "" : " + residual");
}

Product::Positions Product::MatricesOf(int64_t i) const {
  Positions positions = {0, 0};
  for (size_t d = dims; d-- > 0;) {
    positions.a += i % sizes[d] * a_steps[d];
    positions.b += i % sizes[d] * b_steps[d];
    i /= sizes[d];
  }
  return positions;
}

Product::Extent Product::LiveExtent(const Frame& frame) const {
  if (!takes_live_rows()) return {stack, m};
  if (stack == 1) return {1, LiveOf(m, batch_rows, frame)};
  return {LiveOf(stack, batch_rows, frame), m};
}

std::optional<Product> LinearProduct(const NodeView& node) {
  return ProductWithEpilogue(node, LinearOp::kBias, LinearOp::kResidual);
}

std::optional<Product> IntegerLinearProduct(const NodeView& node) {
  return ProductWithEpilogue(node, IntegerLinearOp::kBias, IntegerLinearOp::kResidual);
}

std::optional<Product> MatMulProduct(const NodeView& node) {
  if (node.rank(0) < 1 || node.rank(1) < 1) return std::nullopt;
  const auto op = GemmOp::From(node.attributes());
  if (op.trans_a) return std::nullopt;
  const bool transposed = op.trans_b;
  const float alpha = op.alpha;
  // A vector on the left is a matrix of one row.
  if (node.rank(1) == 2) {
    Product product = FlatProduct(node, transposed);
    product.alpha = alpha;
    return product;
  }
  const Shape& a = node.shape(0);
  Shape b = node.shape(1);
  // A vector on the right is a matrix of one column, the same for all of a.
  if (b.size() == 1) {
    Product product = ProductOf(node);
    product.alpha = alpha;
    product.k = b[0];
    product.n = 1;
    product.m = NumElements(node.out_shape());
    return product;
  }
  Product product = ProductOf(node);
  product.m = a.size() < 2 ? 1 : a[a.size() - 2];
  product.alpha = alpha;
  product.transposed_b = transposed;
  product.k = b[b.size() - (transposed ? 1 : 2)];
  product.n = b[b.size() - (transposed ? 2 : 1)];
  const Shape a_stack(a.begin(), a.end() - std::min<size_t>(2, a.size()));
  const Shape b_stack(b.begin(), b.end() - 2);
  const absl::StatusOr<Shape> stack = BroadcastShapes(a_stack, b_stack);
  if (!stack.ok() || stack->size() > kMaxStackDims) return std::nullopt;
  product.stack = NumElements(*stack);
  product.dims = stack->size();
  int64_t a_step = 1, b_step = 1;
  for (size_t d = product.dims; d-- > 0;) {
    const size_t from_end = product.dims - d;
    product.sizes[d] = (*stack)[d];
    if (from_end <= a_stack.size()) {
      const int64_t size = a_stack[a_stack.size() - from_end];
      product.a_steps[d] = size == 1 ? 0 : a_step;
      a_step *= size;
    }
    if (from_end <= b_stack.size()) {
      const int64_t size = b_stack[b_stack.size() - from_end];
      product.b_steps[d] = size == 1 ? 0 : b_step;
      b_step *= size;
    }
  }
  return product;
}

std::optional<Product> GemmProduct(const NodeView& node) {
  Product product = ProductOf(node);
  const auto op = GemmOp::From(node.attributes());
  product.transposed_a = op.trans_a;
  product.transposed_b = op.trans_b;
  product.alpha = op.alpha;
  product.m = node.out_shape()[0];
  product.n = node.out_shape()[1];
  product.k = node.shape(1)[product.transposed_b ? 1 : 0];
  product.beta = op.beta;
  if (!node.has_input(2) || product.beta == 0) return product;
  // Broadcast to [m, n] from the right.
  const Shape& c = node.shape(2);
  const int64_t columns = c.empty() ? 1 : c.back();
  const int64_t rows = c.size() < 2 ? 1 : c[0];
  product.addend = 2;
  product.addend_column_step = columns == 1 && product.n != 1 ? 0 : 1;
  product.addend_row_step = rows == 1 && product.m != 1 ? 0 : columns;
  return product;
}

std::optional<Addends> AddendsOf(const Product& product) {
  Addends addends = {.residual = product.residual};
  if (product.addend == kNoOperand) return addends;
  if (product.has_bias()) {
    addends.bias = product.addend;
  } else if (product.has_matrix_addend() && product.residual == kNoOperand &&
             product.activation == Activation::kNone) {
    addends.residual = product.addend;
  } else {
    return std::nullopt;
  }
  return addends;
}

void AskWhichIsFastest(const CpuTarget& target, const Product& product,
                       std::vector<Candidate>& candidates) {
  if (candidates.size() < 2) return;
  // The facts that decide it, besides the recipe's machine.
  const std::string question =
      absl::StrCat(candidates.front().option.kernel, ": ", product.Detail(),
                   product.weights ? ", weights" : "", target.one_order ? ", one order" : "");
  for (Candidate& candidate : candidates) candidate.option.question = question;
}

void CountActivation(const Product& product, LaunchWork& work) {
  const auto results = static_cast<double>(product.stack * product.m * product.n);
  switch (product.activation) {
    case Activation::kNone:
    case Activation::kRelu:
      break;
    case Activation::kGelu:
    case Activation::kGeluDoubled:
      work.erfs = results;
      break;
    case Activation::kGeluTanh:
    case Activation::kGeluTanhDoubled:
    case Activation::kTanh:
    case Activation::kSigmoid:
    case Activation::kSilu:
    case Activation::kQuickGelu:
      work.exps = results;
      break;
  }
}

GemmArgs GemmArgsOf(const Product& product, const Addends& addends, const LaunchArgs& launch) {
  return {.a = FloatsAt(launch, 0),
          .lda = product.k,
          .packed_b = launch.operands[1],
          .c = static_cast<float*>(launch.operands[product.out]),
          .ldc = product.n,
          .n = product.n,
          .k = product.k,
          .bias = FloatsAt(launch, addends.bias),
          .residual = FloatsAt(launch, addends.residual),
          .ld_residual = product.n,
          .activation = product.activation};
}

}  // namespace reprise::cpu
