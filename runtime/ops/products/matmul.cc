#include "runtime/ops/products/matmul.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/products/round_rows.h"

namespace reprise::ops {
namespace {

// Signed products may overflow; they wrap around in the unsigned type.
template <typename T>
using Accumulator = std::conditional_t<
    std::is_integral_v<Compute<T>>,
    std::make_unsigned_t<std::conditional_t<std::is_integral_v<Compute<T>>, Compute<T>, int>>,
    Compute<T>>;

// c[m, n] = a[m, k] · b[k, n], four rows at a time so that b is read a quarter of the times.
template <typename T>
void Multiply(const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n) {
  using A = Accumulator<T>;
  std::vector<A> sums(4 * n);
  for (int64_t row = 0; row < m; row += 4) {
    const int64_t rows = std::min<int64_t>(4, m - row);
    std::fill(sums.begin(), sums.end(), A(0));
    for (int64_t i = 0; i < k; ++i) {
      const T* from = b + i * n;
      WatchWork(rows * n);
      A x[4] = {};
      for (int64_t r = 0; r < rows; ++r) x[r] = static_cast<A>(Compute<T>(a[(row + r) * k + i]));
      A* s0 = sums.data();
      A* s1 = s0 + n;
      A* s2 = s1 + n;
      A* s3 = s2 + n;
      if (rows == 4) {
        for (int64_t j = 0; j < n; ++j) {
          const A y = static_cast<A>(Compute<T>(from[j]));
          s0[j] += x[0] * y;
          s1[j] += x[1] * y;
          s2[j] += x[2] * y;
          s3[j] += x[3] * y;
        }
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          A* sum = s0 + r * n;
          for (int64_t j = 0; j < n; ++j) sum[j] += x[r] * static_cast<A>(Compute<T>(from[j]));
        }
      }
    }
    for (int64_t j = 0; j < rows * n; ++j) {
      c[row * n + j] = static_cast<T>(static_cast<Compute<T>>(sums[j]));
    }
  }
}

// Returns a [rows, columns] matrix transposed into a vector.
template <typename T>
std::vector<T> Transposed(const T* in, int64_t rows, int64_t columns) {
  std::vector<T> out(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = in[i * columns + j];
  }
  return out;
}

// Both operands as stacks of matrices.
struct MatMulPlan {
  int64_t m, k, n;
  Shape batch;
  Shape a_batch, b_batch;  // the dims that precede the matrix
};

MatMulPlan PlanMatMul(Shape a, Shape b) {
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  MatMulPlan plan;
  plan.m = a[a.size() - 2];
  plan.k = a.back();
  plan.n = b.back();
  plan.a_batch.assign(a.begin(), a.end() - 2);
  plan.b_batch.assign(b.begin(), b.end() - 2);
  plan.batch = *BroadcastShapes(plan.a_batch, plan.b_batch);
  return plan;
}

// Calls f(index of a's matrix, index of b's matrix, index of the result's) for each product.
template <typename F>
void ForEachProduct(const MatMulPlan& plan, F f) {
  StridedWalk<2> walk(plan.batch, {BroadcastStrides(plan.a_batch, plan.batch),
                                   BroadcastStrides(plan.b_batch, plan.batch)});
  walk.ForEachRow([&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      f(offsets[0] + i * walk.inner_stride(0), offsets[1] + i * walk.inner_stride(1), position + i);
    }
  });
}

using MatMulList = TypeList<float, double, Half, BFloat16, int32_t, uint32_t, int64_t, uint64_t>;

absl::Status MatMulInto(const TensorView& a, const TensorView& b, const MutableTensorView& out) {
  const MatMulPlan plan = PlanMatMul(a.shape, b.shape);
  // One b for all of a's matrices: one product with more rows.
  const bool flat = NumElements(plan.b_batch) == 1 && plan.batch == plan.a_batch;
  return Dispatch(MatMulList{}, a.dtype, [&]<typename T>() {
    if (flat) {
      Multiply(a.as<T>(), b.as<T>(), out.as<T>(), NumElements(plan.batch) * plan.m, plan.k, plan.n);
      return;
    }
    ForEachProduct(plan, [&](int64_t ia, int64_t ib, int64_t ic) {
      Multiply(a.as<T>() + ia * plan.m * plan.k, b.as<T>() + ib * plan.k * plan.n,
               out.as<T>() + ic * plan.m * plan.n, plan.m, plan.k, plan.n);
    });
  });
}

// The first two operands as a product takes them. Float32 products alone have a precision: with
// "bf16" each element is rounded to bfloat16, with "int8" the rows of the first one are rounded to
// bytes (the weights are numbers of few bits by then).
class ProductOperands {
 public:
  explicit ProductOperands(const KernelContext& context)
      : a_(context.inputs[0]), b_(context.inputs[1]) {
    const Attributes& attributes = context.node.attributes;
    const std::string precision = attributes.String(kPrecisionAttribute, "");
    if (precision == PrecisionName(Precision::kBf16)) {
      a_.data = Round(a_, rounded_a_);
      b_.data = Round(b_, rounded_b_);
    } else if (precision == PrecisionName(Precision::kInt8)) {
      const int64_t k = a_.shape.back();
      rounded_a_.resize(static_cast<size_t>(a_.num_elements()));
      RoundRows(a_.as<float>(), k == 0 ? 0 : a_.num_elements() / k, k,
                attributes.Int(kRoundedBlockAttribute, 0), rounded_a_.data());
      a_.data = rounded_a_.data();
    }
  }
  const TensorView& a() const { return a_; }
  const TensorView& b() const { return b_; }

 private:
  static const void* Round(const TensorView& from, std::vector<float>& to) {
    const float* values = from.as<float>();
    to.assign(values, values + from.num_elements());
    for (float& value : to) value = BFloat16ToFloat(FloatToBFloat16(value));
    return to.data();
  }

  TensorView a_, b_;
  std::vector<float> rounded_a_, rounded_b_;
};

constexpr uint32_t kMatMulTypes = kFloats | TypeBit(DType::kInt32) | TypeBit(DType::kUInt32) |
                                  TypeBit(DType::kInt64) | TypeBit(DType::kUInt64);

}  // namespace

void MultiplyF32(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  Multiply(a, b, c, m, k, n);
}

absl::StatusOr<SizeList> MatMulShape(const SizeList& a, const SizeList& b) {
  if (a.empty() || b.empty()) return absl::InvalidArgumentError("a scalar is not a matrix");
  const Size k = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (a.back() != k) {
    return absl::InvalidArgumentError(absl::StrCat("inner sizes ", a.back(), " and ", k, " of ",
                                                   ShapeToString(a), " and ", ShapeToString(b),
                                                   " differ"));
  }
  const absl::Span<const Size> a_dims = a, b_dims = b;
  ASSIGN_OR_RETURN(SizeList shape, BroadcastShapes(a_dims.first(a.size() < 2 ? 0 : a.size() - 2),
                                                   b_dims.first(b.size() < 2 ? 0 : b.size() - 2)));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  return shape;
}

absl::Status MatMulRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kMatMulTypes));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  ASSIGN_OR_RETURN(SizeList shape, MatMulShape(context.shape(0), context.shape(1)));
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status MatMulKernel(const KernelContext& context) {
  const ProductOperands operands(context);
  return MatMulInto(operands.a(), operands.b(), context.outputs[0]);
}

absl::Status GemmRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kMatMulTypes));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  RETURN_IF_ERROR(CheckRank(context, 1, 2));
  const auto op = GemmOp::From(context.attributes());
  const bool ta = op.trans_a;
  const bool tb = op.trans_b;
  if (context.shape(0)[ta ? 0 : 1] != context.shape(1)[tb ? 1 : 0]) {
    return absl::InvalidArgumentError("the inner sizes differ");
  }
  SizeList shape = {context.shape(0)[ta ? 1 : 0], context.shape(1)[tb ? 0 : 1]};
  if (context.has_input(2)) {
    RETURN_IF_ERROR(CheckSameType(context, 0, 2));
    ASSIGN_OR_RETURN(const SizeList broadcast, BroadcastShapes(shape, context.shape(2)));
    if (broadcast != shape) {
      return absl::InvalidArgumentError("input 2 does not broadcast to the product");
    }
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status GemmKernel(const KernelContext& context) {
  const ProductOperands operands(context);
  const TensorView& a = operands.a();
  const TensorView& b = operands.b();
  const MutableTensorView& out = context.outputs[0];
  const auto op = GemmOp::From(context.node.attributes);
  const bool ta = op.trans_a;
  const bool tb = op.trans_b;
  const float alpha = op.alpha;
  const float beta = op.beta;
  const int64_t m = out.shape[0], n = out.shape[1], k = a.shape[ta ? 0 : 1];
  return Dispatch(MatMulList{}, a.dtype, [&]<typename T>() {
    using C = Compute<T>;
    std::vector<T> a_copy, b_copy;
    if (ta) a_copy = Transposed(a.as<T>(), k, m);
    if (tb) b_copy = Transposed(b.as<T>(), n, k);
    T* y = out.as<T>();
    Multiply(ta ? a_copy.data() : a.as<T>(), tb ? b_copy.data() : b.as<T>(), y, m, k, n);
    if (alpha != 1) {
      for (int64_t i = 0; i < m * n; ++i) y[i] = static_cast<T>(static_cast<C>(C(y[i]) * C(alpha)));
    }
    if (HasInput(context, 2) && beta != 0) {
      BroadcastApply(
          out.shape, y, y, out.shape, context.inputs[2].as<T>(), context.inputs[2].shape,
          [beta](T x, T c) { return static_cast<T>(static_cast<C>(C(x) + C(beta) * C(c))); });
    }
  });
}

absl::Status MatMulIntegerRule(InferContext& context) {
  constexpr uint32_t kBytes = TypeBit(DType::kInt8) | TypeBit(DType::kUInt8);
  RETURN_IF_ERROR(CheckType(context, 0, kBytes));
  RETURN_IF_ERROR(CheckType(context, 1, kBytes));
  ASSIGN_OR_RETURN(SizeList shape, MatMulShape(context.shape(0), context.shape(1)));
  for (size_t i : {2, 3}) {
    if (!context.has_input(i)) continue;
    RETURN_IF_ERROR(CheckSameType(context, i - 2, i));
    const Size points = NumElements(context.shape(i));
    const SizeList& operand = context.shape(i - 2);
    SizeList lines = operand;
    if (!lines.empty()) lines.back() = 1;
    if (i == 2 && context.shape(i) == lines) continue;
    const Size rows =
        i == 2 ? (operand.size() < 2 ? Size(1) : operand[operand.size() - 2]) : operand.back();
    if (points != 1 && points != rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, " has ", points, " zero points for ", rows, i == 2 ? " rows" : " columns"));
    }
  }
  context.SetOutput(0, DType::kInt32, std::move(shape));
  return absl::OkStatus();
}

namespace {

// Returns operand `i` minus its zero points, as int32: one, or one a row of each matrix of a or for
// all of its rows, or one a column of b.
std::vector<int32_t> WithoutZeroPoint(const KernelContext& context, size_t i) {
  const TensorView& in = context.inputs[i];
  const std::vector<int64_t> points = Int64sOf(context, i + 2);
  const int64_t columns = in.shape.back();
  const int64_t count = static_cast<int64_t>(points.size());
  std::vector<int32_t> values(in.num_elements());
  (void)Dispatch(TypeList<int8_t, uint8_t>{}, in.dtype, [&]<typename T>() {
    for (size_t at = 0; at < values.size(); ++at) {
      int64_t point = points.empty() ? 0 : points[0];
      if (count > 1) point = points[i == 0 ? at / columns % count : at % columns];
      values[at] = static_cast<int32_t>(in.as<T>()[at]) - static_cast<int32_t>(point);
    }
  });
  return values;
}

}  // namespace

absl::Status MatMulIntegerKernel(const KernelContext& context) {
  const std::vector<int32_t> a = WithoutZeroPoint(context, 0);
  const std::vector<int32_t> b = WithoutZeroPoint(context, 1);
  return MatMulInto({DType::kInt32, context.inputs[0].shape, a.data()},
                    {DType::kInt32, context.inputs[1].shape, b.data()}, context.outputs[0]);
}

namespace {

template <typename List>
List SwapLastTwo(List shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

}  // namespace

absl::Status FusedMatMulRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  for (absl::string_view name : {"transBatchA", "transBatchB"}) {
    if (context.attributes().Int(name, 0) != 0) {
      return absl::UnimplementedError(absl::StrCat("attribute '", name, "' is not supported"));
    }
  }
  const auto op = GemmOp::From(context.attributes());
  const bool ta = op.trans_a;
  const bool tb = op.trans_b;
  ASSIGN_OR_RETURN(SizeList shape,
                   MatMulShape(ta ? SwapLastTwo(context.shape(0)) : context.shape(0),
                               tb ? SwapLastTwo(context.shape(1)) : context.shape(1)));
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status FusedMatMulKernel(const KernelContext& context) {
  const float alpha = GemmOp::From(context.node.attributes).alpha;
  std::vector<float> copies[2];
  TensorView operands[2] = {context.inputs[0], context.inputs[1]};
  for (int i = 0; i < 2; ++i) {
    TensorView& view = operands[i];
    const bool swap = context.node.attributes.Int(i == 0 ? "transA" : "transB", 0) != 0;
    if (!swap || view.shape.size() < 2) continue;
    const int64_t rows = view.shape[view.shape.size() - 2], columns = view.shape.back();
    const int64_t matrix = rows * columns;
    for (int64_t at = 0; at < view.num_elements(); at += matrix) {
      const std::vector<float> t = Transposed(view.as<float>() + at, rows, columns);
      copies[i].insert(copies[i].end(), t.begin(), t.end());
    }
    view = {view.dtype, SwapLastTwo(view.shape), copies[i].data()};
  }
  RETURN_IF_ERROR(MatMulInto(operands[0], operands[1], context.outputs[0]));
  float* y = context.outputs[0].as<float>();
  for (int64_t i = 0; i < context.outputs[0].num_elements(); ++i) y[i] *= alpha;
  return absl::OkStatus();
}

absl::Status CheckActivation(absl::string_view activation) {
  for (absl::string_view known : {"none", "gelu", "gelu_tanh", "gelu_doubled", "gelu_tanh_doubled",
                                  "relu", "tanh", "sigmoid", "silu", "quick_gelu"}) {
    if (activation == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown activation '", activation, "'"));
}

void ApplyActivation(absl::string_view activation, float* y, int64_t count) {
  const auto map = [&](auto f) {
    for (int64_t i = 0; i < count; ++i) y[i] = f(y[i]);
  };
  if (activation == "gelu") map(GeluExact);
  if (activation == "gelu_tanh") map(GeluTanh);
  if (activation == "gelu_doubled") map(GeluExactDoubled);
  if (activation == "gelu_tanh_doubled") map(GeluTanhDoubled);
  if (activation == "relu") map([](float x) { return x < 0 ? 0 : x; });
  if (activation == "tanh") map([](float x) { return std::tanh(x); });
  if (activation == "sigmoid") map([](float x) { return 1 / (1 + std::exp(-x)); });
  if (activation == "silu") map([](float x) { return x / (1 + std::exp(-x)); });
  if (activation == "quick_gelu") {
    map([](float x) { return x / (1 + std::exp(-kQuickGeluAlpha * x)); });
  }
}

absl::Status LinearRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  RETURN_IF_ERROR(CheckRank(context, 1, 2));
  RETURN_IF_ERROR(CheckActivation(LinearOp::From(context.attributes()).activation));
  if (context.rank(0) == 0) return absl::InvalidArgumentError("a scalar is not a matrix");
  ASSIGN_OR_RETURN(SizeList shape, MatMulShape(context.shape(0), context.shape(1)));
  if (context.has_input(2) && context.shape(2) != SizeList{shape.back()}) {
    return absl::InvalidArgumentError("the bias does not match the weights' columns");
  }
  if (context.has_input(3) && context.shape(3) != shape) {
    return absl::InvalidArgumentError(absl::StrCat("the residual has the shape ",
                                                   ShapeToString(context.shape(3)), ", the result ",
                                                   ShapeToString(shape)));
  }
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status LinearKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  const ProductOperands operands(context);
  RETURN_IF_ERROR(MatMulInto(operands.a(), operands.b(), out));
  float* y = out.as<float>();
  const int64_t count = out.num_elements();
  const int64_t n = out.shape.back();
  if (HasInput(context, 2)) {
    const float* bias = context.inputs[2].as<float>();
    for (int64_t row = 0; row < count; row += n) {
      for (int64_t j = 0; j < n; ++j) y[row + j] += bias[j];
    }
  }
  ApplyActivation(LinearOp::From(context.node.attributes).activation, y, count);
  if (HasInput(context, 3)) {
    const float* residual = context.inputs[3].as<float>();
    for (int64_t i = 0; i < count; ++i) y[i] += residual[i];
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
