// Matrix products. Where the right side is a parameter it is packed once a model version, by the
// prepare op cpu.PackPanels; otherwise both sides are activations and panels are made in scratch.
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/weight_memory.h"

namespace reprise::cpu {
namespace {

constexpr int kNoOperand = -1;
constexpr size_t kMaxBatchDims = 6;

// A stack of products out[i] = activation(a[i] b[i] + bias) + residual. Packed: the stack is 1.
struct ProductParams {
  const GemmKernels* kernels = nullptr;
  int64_t m = 0, n = 0, k = 0;
  Activation activation = Activation::kNone;
  bool transposed_b = false;
  // Positions among the operands.
  int bias = kNoOperand;
  int residual = kNoOperand;
  int out = 0;
  int workspace = kNoOperand;
  int64_t batch_rows = 0;  // of m

  // Unpacked: the stack, outermost dim first, and each side's steps in matrices (0: repeated).
  int64_t stack = 1;
  size_t dims = 0;
  int64_t sizes[kMaxBatchDims] = {};
  int64_t a_steps[kMaxBatchDims] = {};
  int64_t b_steps[kMaxBatchDims] = {};
};

const float* FloatsAt(const LaunchArgs& args, int operand) {
  return operand == kNoOperand ? nullptr : static_cast<const float*>(args.operands[operand]);
}

GemmArgs ArgsOf(const ProductParams& p, const LaunchArgs& args) {
  return {.a = FloatsAt(args, 0),
          .lda = p.k,
          .packed_b = args.operands[1],
          .c = static_cast<float*>(args.operands[p.out]),
          .ldc = p.n,
          .n = p.n,
          .k = p.k,
          .bias = FloatsAt(args, p.bias),
          .residual = FloatsAt(args, p.residual),
          .ld_residual = p.n,
          .activation = p.activation};
}

void RunPacked(const LaunchArgs& args) {
  const auto& p = *static_cast<const ProductParams*>(args.params);
  const int64_t m = LiveOf(p.m, p.batch_rows, *args.frame);
  p.kernels->part(ArgsOf(p, args), p.kernels->Partition(m, p.n, p.k, args.parts, args.part));
}

// Whole matrices of the stack to each part while there are enough of them, else rows and panels of
// each matrix.
void RunUnpacked(const LaunchArgs& args) {
  const auto& p = *static_cast<const ProductParams*>(args.params);
  const int parts = std::min(args.parts, kMaxScratchParts);
  if (args.part >= parts) return;
  const int64_t scratch_floats = p.kernels->UnpackedScratchFloats(p.k);
  UnpackedGemmArgs gemm;
  gemm.gemm = ArgsOf(p, args);
  gemm.b = {
      .data = FloatsAt(args, 1), .ld = p.transposed_b ? p.k : p.n, .transposed = p.transposed_b};
  gemm.scratch = static_cast<float*>(args.operands[p.workspace]) + args.part * scratch_floats;
  const bool divide_stack = p.stack >= parts;
  const ItemRange range =
      divide_stack ? RangeOfPart(p.stack, 1, args.part, parts) : ItemRange{0, p.stack};
  const GemmPart part = divide_stack ? GemmPart{0, p.m, 0, p.kernels->Panels(p.n)}
                                     : p.kernels->Partition(p.m, p.n, p.k, parts, args.part);
  const float* a = gemm.gemm.a;
  const float* b = gemm.b.data;
  float* c = gemm.gemm.c;
  for (int64_t i = range.begin; i < range.end; ++i) {
    int64_t rest = i, a_index = 0, b_index = 0;
    for (size_t d = p.dims; d-- > 0;) {
      a_index += rest % p.sizes[d] * p.a_steps[d];
      b_index += rest % p.sizes[d] * p.b_steps[d];
      rest /= p.sizes[d];
    }
    gemm.gemm.a = a + a_index * p.m * p.k;
    gemm.b.data = b + b_index * p.k * p.n;
    gemm.gemm.c = c + i * p.m * p.n;
    p.kernels->unpacked(gemm, part);
  }
}

double Flops(const ProductParams& p) {
  return 2.0 * static_cast<double>(p.stack * p.m) * static_cast<double>(p.n * p.k);
}

std::string Detail(const ProductParams& p, absl::string_view activation) {
  return absl::StrCat(p.stack == 1 ? "" : absl::StrCat(p.stack, " x "), "[", p.m, ", ", p.k,
                      "] x [", p.k, ", ", p.n, "]", p.bias == kNoOperand ? "" : " + bias",
                      activation == "none" ? "" : absl::StrCat(", ", activation),
                      p.residual == kNoOperand ? "" : " + residual");
}

// Input 1, a parameter, packed at preparation; multiplied by `scale`.
Candidate Packed(const CpuTarget& target, const NodeView& node, ProductParams params, float scale,
                 absl::string_view activation) {
  params.batch_rows = node.batch_rows();
  Candidate candidate = MakeCandidate(target, node, "gemm", RunPacked, params, Flops(params));
  const size_t bytes = sizeof(float) * target.gemm.PackedFloats(params.k, params.n);
  candidate.option.prepare.push_back({.input = 1,
                                      .op = kPackOp,
                                      .attributes = {{"panel", target.gemm.panel_columns},
                                                     {"scale", scale},
                                                     {"transposed", int64_t{params.transposed_b}}},
                                      .dtype = DType::kUInt8,
                                      .shape = {static_cast<int64_t>(bytes)}});
  candidate.option.in_place = params.residual;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  candidate.bound.detail = Detail(params, activation);
  return candidate;
}

Candidate Unpacked(const CpuTarget& target, const NodeView& node, ProductParams params,
                   absl::string_view activation) {
  params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
  Candidate candidate =
      MakeCandidate(target, node, "gemm_unpacked", RunUnpacked, params, Flops(params));
  candidate.option.workspace_bytes =
      sizeof(float) * kMaxScratchParts * target.gemm.UnpackedScratchFloats(params.k);
  candidate.option.in_place = params.residual;
  candidate.bound.detail = Detail(params, activation);
  return candidate;
}

std::optional<Activation> ActivationOf(absl::string_view name) {
  constexpr std::pair<absl::string_view, Activation> kNames[] = {
      {"none", Activation::kNone}, {"relu", Activation::kRelu},
      {"gelu", Activation::kGelu}, {"gelu_tanh", Activation::kGeluTanh},
      {"tanh", Activation::kTanh}, {"sigmoid", Activation::kSigmoid},
      {"silu", Activation::kSilu}};
  for (const auto& [known, activation] : kNames) {
    if (name == known) return activation;
  }
  return std::nullopt;
}

// m, n, k of x [..., k] times a matrix [k, n].
ProductParams FlatProduct(const CpuTarget& target, const NodeView& node) {
  ProductParams params;
  params.kernels = &target.gemm;
  params.k = node.shape(1)[0];
  params.n = node.shape(1)[1];
  params.m = params.n == 0 ? 0 : NumElements(node.out_shape()) / params.n;
  params.out = static_cast<int>(node.num_inputs());
  return params;
}

}  // namespace

absl::StatusOr<Tensor> RunPack(const CpuTarget& target, const Attributes& attributes,
                               const Tensor& weights, WeightMemory& memory) {
  const bool transposed = attributes.Int("transposed", 0) != 0;
  if (weights.dtype() != DType::kFloat32 || weights.shape().size() != 2) {
    return absl::InternalError(absl::StrCat(kPackOp, " of ", DTypeName(weights.dtype()), " ",
                                            ShapeToString(weights.shape())));
  }
  if (attributes.Int("panel", 0) != target.gemm.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackOp, " into panels of ", attributes.Int("panel", 0),
                                            " columns on a device of ", target.gemm.panel_columns));
  }
  const int64_t k = weights.shape()[transposed ? 1 : 0];
  const int64_t n = weights.shape()[transposed ? 0 : 1];
  const int64_t bytes = target.gemm.PackedFloats(k, n) * static_cast<int64_t>(sizeof(float));
  std::shared_ptr<std::byte> packed = memory.Allocate(static_cast<size_t>(bytes));
  target.gemm.pack({.data = static_cast<const float*>(weights.data()),
                    .ld = weights.shape()[1],
                    .transposed = transposed},
                   k, n, attributes.Float("scale", 1), reinterpret_cast<float*>(packed.get()));
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

std::vector<Candidate> PlanLinear(const CpuTarget& target, const NodeView& node) {
  const std::string name = node.attributes().String("activation", "none");
  const std::optional<Activation> activation = ActivationOf(name);
  if (!node.AllOf(DType::kFloat32) || !activation.has_value()) return {};
  ProductParams params = FlatProduct(target, node);
  params.activation = *activation;
  if (node.has_input(2)) params.bias = 2;
  if (node.has_input(3)) params.residual = 3;
  if (node.is_parameter(1)) return {Packed(target, node, params, 1, name)};
  return {Unpacked(target, node, params, name)};
}

std::vector<Candidate> PlanMatMul(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32)) return {};
  // A vector on the left is a matrix of one row; one on the right is left to the reference.
  if (node.rank(1) < 2 || node.rank(0) < 1) return {};
  if (node.rank(1) == 2) {
    const ProductParams params = FlatProduct(target, node);
    if (node.is_parameter(1)) return {Packed(target, node, params, 1, "none")};
    return {Unpacked(target, node, params, "none")};
  }
  const Shape& a = node.shape(0);
  const Shape& b = node.shape(1);
  ProductParams params;
  params.kernels = &target.gemm;
  params.m = a.size() < 2 ? 1 : a[a.size() - 2];
  params.k = b[b.size() - 2];
  params.n = b.back();
  params.out = static_cast<int>(node.num_inputs());
  Shape a_stack(a.begin(), a.end() - std::min<size_t>(2, a.size()));
  Shape b_stack(b.begin(), b.end() - 2);
  const absl::StatusOr<Shape> stack = BroadcastShapes(a_stack, b_stack);
  if (!stack.ok() || stack->size() > kMaxBatchDims) return {};
  params.stack = NumElements(*stack);
  params.dims = stack->size();
  int64_t a_step = 1, b_step = 1;
  for (size_t d = params.dims; d-- > 0;) {
    const size_t from_end = params.dims - d;
    params.sizes[d] = (*stack)[d];
    if (from_end <= a_stack.size()) {
      const int64_t size = a_stack[a_stack.size() - from_end];
      params.a_steps[d] = size == 1 ? 0 : a_step;
      a_step *= size;
    }
    if (from_end <= b_stack.size()) {
      const int64_t size = b_stack[b_stack.size() - from_end];
      params.b_steps[d] = size == 1 ? 0 : b_step;
      b_step *= size;
    }
  }
  return {Unpacked(target, node, params, "none")};
}

std::vector<Candidate> PlanGemm(const CpuTarget& target, const NodeView& node) {
  if (!node.AllOf(DType::kFloat32) || node.attributes().Int("transA", 0) != 0) return {};
  const float alpha = node.attributes().Float("alpha", 1);
  ProductParams params;
  params.kernels = &target.gemm;
  params.transposed_b = node.attributes().Int("transB", 0) != 0;
  params.m = node.out_shape()[0];
  params.n = node.out_shape()[1];
  params.k = node.shape(1)[params.transposed_b ? 1 : 0];
  params.out = static_cast<int>(node.num_inputs());
  if (node.has_input(2)) {
    if (node.attributes().Float("beta", 1) != 1) return {};
    const Shape& c = node.shape(2);
    if (c == node.out_shape()) {
      params.residual = 2;
    } else if (c == Shape{params.n} || c == Shape{1, params.n}) {
      params.bias = 2;
    } else {
      return {};
    }
  }
  if (node.is_parameter(1)) return {Packed(target, node, params, alpha, "none")};
  if (alpha != 1) return {};
  return {Unpacked(target, node, params, "none")};
}

}  // namespace reprise::cpu
