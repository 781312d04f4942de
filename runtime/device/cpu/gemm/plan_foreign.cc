// Matrix products by OpenBLAS: of float64, of forms that the packed kernels do not take, and of
// float32 where those have no vectors to work with.
#include <cstring>
#include <limits>

#include "runtime/device/cpu/elementwise/elementwise.h"
#include "runtime/device/cpu/gemm/foreign_blas.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"

namespace reprise::cpu {
namespace {

struct ForeignParams {
  std::shared_ptr<const ForeignBlas> blas;
  Product product;
  UnaryFunction activation = nullptr;  // float32 only
};

struct Block {
  ItemRange rows, columns;
};

// This part's share of every matrix.
Block BlockOfPart(int64_t m, int64_t n, int part, int parts) {
  // The rows and columns that any core's kernel computes together divide these.
  constexpr int64_t kRows = 16, kColumns = 16;
  if (m >= n) return {RangeOfPart(m, kRows, part, parts), {0, n}};
  return {{0, m}, RangeOfPart(n, kColumns, part, parts)};
}

template <typename T>
const T* At(const LaunchArgs& args, int operand) {
  return static_cast<const T*>(args.operands[operand]);
}

// Writes to c the values that the product is added to, and returns whether there are any. The
// residual can be there already, when the launch is in place.
template <typename T>
bool Preload(const Product& p, const LaunchArgs& args, const T* residual, T* c,
             const Block& block) {
  const bool adds_residual = residual != nullptr && p.activation == Activation::kNone;
  if (p.addend == kNoOperand && !adds_residual) return false;
  for (int64_t row = block.rows.begin; row < block.rows.end; ++row) {
    T* to = c + row * p.n;
    if (adds_residual && residual != c) {
      std::memcpy(to + block.columns.begin, residual + row * p.n + block.columns.begin,
                  sizeof(T) * static_cast<size_t>(block.columns.end - block.columns.begin));
    }
    if (p.addend == kNoOperand) continue;
    const T* addend = At<T>(args, p.addend) + row * p.addend_row_step;
    const T beta = static_cast<T>(p.beta);
    for (int64_t i = block.columns.begin; i < block.columns.end; ++i) {
      const T value = beta * addend[i * p.addend_column_step];
      to[i] = adds_residual ? to[i] + value : value;
    }
  }
  return true;
}

// Activation, and the residual that comes after it.
void Finish(const ForeignParams& params, const float* residual, float* c, const Block& block) {
  const int64_t n = params.product.n;
  const int64_t count = block.columns.end - block.columns.begin;
  for (int64_t row = block.rows.begin; row < block.rows.end; ++row) {
    float* to = c + row * n + block.columns.begin;
    params.activation(to, to, count);
    if (residual == nullptr) continue;
    const float* from = residual + row * n + block.columns.begin;
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  }
}

// Gives each part whole matrices of the stack if there are enough of them, else blocks of each.
template <typename T>
void RunForeign(const LaunchArgs& args) {
  const auto& params = *static_cast<const ForeignParams*>(args.params);
  const Product& p = params.product;
  const Product::Extent live = p.LiveExtent(*args.frame);
  const bool divide_stack = live.stack >= args.parts;
  const ItemRange range =
      divide_stack ? RangeOfPart(live.stack, 1, args.part, args.parts) : ItemRange{0, live.stack};
  const Block block = divide_stack ? Block{{0, live.rows}, {0, p.n}}
                                   : BlockOfPart(live.rows, p.n, args.part, args.parts);
  const int64_t row = block.rows.begin, column = block.columns.begin;
  BlasProduct<T> product = {.m = block.rows.end - row,
                            .n = block.columns.end - column,
                            .k = p.k,
                            .lda = p.transposed_a ? p.m : p.k,
                            .transposed_a = p.transposed_a,
                            .ldb = p.transposed_b ? p.k : p.n,
                            .transposed_b = p.transposed_b,
                            .ldc = p.n,
                            .alpha = static_cast<T>(p.alpha)};
  if (product.m == 0 || product.n == 0) return;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Product::Positions matrices = p.MatricesOf(i);
    const T* residual =
        p.residual == kNoOperand ? nullptr : At<T>(args, p.residual) + i * p.m * p.n;
    T* c = static_cast<T*>(args.operands[p.out]) + i * p.m * p.n;
    product.a = At<T>(args, 0) + matrices.a * p.m * p.k + (p.transposed_a ? row : row * p.k);
    product.b = At<T>(args, 1) + matrices.b * p.k * p.n + (p.transposed_b ? column * p.k : column);
    product.c = c + row * p.n + column;
    product.beta = Preload(p, args, residual, c, block) ? T{1} : T{0};
    params.blas->Multiply(product);
    if constexpr (std::is_same_v<T, float>) {
      if (params.activation != nullptr) Finish(params, residual, c, block);
    }
  }
}

UnaryFunction ActivationFunction(const CpuTarget& target, Activation activation) {
  const ElementwiseKernels& elementwise = ElementwiseKernelsFor(target.isa);
  switch (activation) {
    case Activation::kNone:
      return nullptr;
    case Activation::kRelu:
      return elementwise.unary(Unary::kRelu);
    case Activation::kGelu:
      return elementwise.unary(Unary::kGelu);
    case Activation::kGeluTanh:
      return elementwise.unary(Unary::kGeluTanh);
    case Activation::kTanh:
      return elementwise.unary(Unary::kTanh);
    case Activation::kSigmoid:
      return elementwise.unary(Unary::kSigmoid);
    case Activation::kSilu:
      return elementwise.unary(Unary::kSilu);
    case Activation::kQuickGelu:
      return elementwise.unary(Unary::kQuickGelu);
    case Activation::kGeluDoubled:
      return elementwise.unary(Unary::kGeluDoubled);
    case Activation::kGeluTanhDoubled:
      return elementwise.unary(Unary::kGeluTanhDoubled);
  }
  return nullptr;
}

}  // namespace

std::optional<Candidate> ForeignCandidate(const CpuTarget& target, const NodeView& node,
                                          const Product& product) {
  if (target.blas == nullptr || !node.AllOf(product.dtype)) return std::nullopt;
  const bool f32 = product.dtype == DType::kFloat32;
  if (!f32 && product.dtype != DType::kFloat64) return std::nullopt;
  if (!f32 && product.activation != Activation::kNone) return std::nullopt;
  // The library counts in ints.
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (std::max({product.m, product.n, product.k}) > kMost) return std::nullopt;
  Candidate candidate = MakeCandidate(
      target, node, "gemm_openblas", f32 ? RunForeign<float> : RunForeign<double>,
      ForeignParams{target.blas, product, ActivationFunction(target, product.activation)},
      product.flops());
  candidate.option.kernel = "gemm_openblas";
  candidate.option.takes_live_rows = product.takes_live_rows();
  // Anything that is added after the activation has to wait outside of c.
  if (product.activation == Activation::kNone) candidate.option.in_place = product.residual;
  candidate.bound.detail = product.Detail();
  candidate.bound.foreign = true;
  return candidate;
}

}  // namespace reprise::cpu
