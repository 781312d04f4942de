// Products of bytes: reprise.IntegerLinear and MatMulInteger. Where the right side is a parameter,
// it is packed once for each model version, by the prepare op cpu.PackU8S8Panels; otherwise its
// panels are packed into scratch at each replay.
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/quantized/quantize.h"

namespace reprise::cpu {
namespace {

// One number for all rows or columns, or one for each; kNoOperand: none is given.
struct Factors {
  int operand = kNoOperand;
  int64_t step = 0;
};

struct IntegerParams {
  const U8S8Kernels* kernels = nullptr;
  Product product;
  bool a_signed = false, b_signed = false;
  Factors a_zero, b_zero, a_scale, b_scale;
  int bias = kNoOperand;
  // Where B is packed at replay: the operand that is the workspace, and its bytes for each part.
  int workspace = kNoOperand;
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;
};

// Input `i` of `node`, of which there may be one or `many`; nothing where there are others.
std::optional<Factors> FactorsOf(const NodeView& node, size_t i, int64_t many) {
  if (!node.has_input(i)) return Factors{};
  const int64_t count = NumElements(node.shape(i));
  if (count != 1 && count != many) return std::nullopt;
  return Factors{static_cast<int>(i), count == 1 ? 0 : 1};
}

U8S8Args ArgsOf(const IntegerParams& params, const LaunchArgs& args) {
  const Product& p = params.product;
  const auto at = [&](int operand) -> const void* {
    return operand == kNoOperand ? nullptr : args.operands[operand];
  };
  const auto floats = [&](int operand) { return static_cast<const float*>(at(operand)); };
  return {.a = args.operands[0],
          .lda = p.k,
          .a_signed = params.a_signed,
          .packed_b = args.operands[1],
          .b_signed = params.b_signed,
          .c = args.operands[p.out],
          .ldc = p.n,
          .n = p.n,
          .k = p.k,
          .a_zero = {at(params.a_zero.operand), params.a_zero.step, params.a_signed},
          .b_zero = {at(params.b_zero.operand), params.b_zero.step, params.b_signed},
          .a_scale = floats(params.a_scale.operand),
          .a_scale_step = params.a_scale.step,
          .b_scale = floats(params.b_scale.operand),
          .b_scale_step = params.b_scale.step,
          .bias = floats(params.bias),
          .residual = floats(p.residual),
          .ld_residual = p.n,
          .activation = p.activation};
}

void RunPacked(const LaunchArgs& args) {
  const auto& params = *static_cast<const IntegerParams*>(args.params);
  const Product& p = params.product;
  const int64_t m = p.LiveExtent(*args.frame).rows;
  params.kernels->part(ArgsOf(params, args),
                       params.kernels->Partition(m, p.n, args.parts, args.part));
}

// Gives each part whole matrices of the stack if there are enough of them, else rows and panels of
// each matrix.
void RunUnpacked(const LaunchArgs& args) {
  const auto& params = *static_cast<const IntegerParams*>(args.params);
  const Product& p = params.product;
  const U8S8Kernels& kernels = *params.kernels;
  const int parts = PartsWithScratch(args, params.scratch_parts);
  if (args.part >= parts) return;
  const Product::Extent live = p.LiveExtent(*args.frame);
  const bool divide_stack = live.stack >= parts;
  const ItemRange range =
      divide_stack ? RangeOfPart(live.stack, 1, args.part, parts) : ItemRange{0, live.stack};
  const GemmPart part = divide_stack ? GemmPart{0, live.rows, 0, kernels.Panels(p.n)}
                                     : kernels.Partition(live.rows, p.n, parts, args.part);
  void* const scratch =
      static_cast<std::byte*>(args.operands[params.workspace]) + args.part * params.scratch_bytes;
  const U8S8Args first = ArgsOf(params, args);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Product::Positions matrices = p.MatricesOf(i);
    U8S8Args of_matrix = first;
    of_matrix.a = static_cast<const uint8_t*>(first.a) + matrices.a * p.m * p.k;
    // Elements of four bytes, floats or not.
    of_matrix.c = static_cast<float*>(first.c) + i * p.m * p.n;
    const ByteSource b = {
        .data = static_cast<const uint8_t*>(first.packed_b) + matrices.b * p.k * p.n,
        .ld = p.n,
        .is_signed = params.b_signed};
    kernels.unpacked(of_matrix, b, part, scratch);
  }
}

std::vector<Candidate> IntegerCandidates(const CpuTarget& target, const NodeView& node,
                                         IntegerParams params) {
  const Product& product = params.product;
  params.a_signed = node.dtype(0) == DType::kInt8;
  params.b_signed = node.dtype(1) == DType::kInt8;
  if (!product.weights) {
    params.workspace = static_cast<int>(node.num_inputs() + node.num_outputs());
    params.scratch_parts = target.scratch_parts;
    params.scratch_bytes = (U8S8KernelsFor(target.isa).PanelBytes(product.k) + 63) / 64 * 64;
  }
  const absl::string_view name = product.weights ? "gemm_u8s8" : "gemm_u8s8_unpacked";
  std::vector<Candidate> candidates;
  const auto add = [&](const U8S8Kernels& kernels, absl::string_view tier) {
    params.kernels = &kernels;
    Candidate& candidate = candidates.emplace_back(MakeCandidate(
        target, node, name, product.weights ? RunPacked : RunUnpacked, params, product.flops()));
    KernelOption& option = candidate.option;
    option.kernel = absl::StrCat(name, "_", tier);
    // Integer sums are exact in each form.
    option.order = std::string(name);
    if (product.weights) {
      option.prepare.push_back(
          {.input = 1,
           .op = kPackU8S8Op,
           .attributes = {{"a_signed", int64_t{params.a_signed}}, {"panel", kernels.panel_columns}},
           .dtype = DType::kUInt8,
           .shape = {kernels.PackedBytes(product.k, product.n)}});
    } else {
      option.workspace_bytes = static_cast<size_t>(params.scratch_parts * params.scratch_bytes);
    }
    option.in_place = product.residual;
    option.takes_live_rows = product.takes_live_rows();
    CountActivation(product, candidate.bound.work);
    candidate.bound.detail = product.Detail();
  };
  if (const U8S8Kernels* const unit = TileU8S8KernelsFor(target.isa);
      unit != nullptr && product.weights && product.m >= kFewestUnitRows) {
    add(*unit, IsaName(Isa::kAmx));
  }
  add(U8S8KernelsFor(target.isa), IsaName(ByteTier(target.isa)));
  AskWhichIsFastest(target, product, candidates);
  return candidates;
}

}  // namespace

absl::StatusOr<Tensor> RunPackU8S8(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const U8S8Kernels& kernels = U8S8KernelsFor(call.target.isa);
  if (!ops::IsByte(weights.dtype()) || weights.shape().size() != 2 ||
      call.attributes.Int("panel", 0) != kernels.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackU8S8Op, " of ", DTypeName(weights.dtype()), " ",
                                            ShapeToString(weights.shape()), " into panels of ",
                                            call.attributes.Int("panel", 0),
                                            " columns on a device of ", kernels.panel_columns));
  }
  const int64_t k = weights.shape()[0], n = weights.shape()[1];
  const int64_t bytes = kernels.PackedBytes(k, n);
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  kernels.pack({.data = weights.data(), .ld = n, .is_signed = weights.dtype() == DType::kInt8},
               call.attributes.Int("a_signed", 0) != 0, k, n, packed.get());
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

std::vector<Candidate> PlanIntegerLinear(const CpuTarget& target, const NodeView& node) {
  const std::optional<Product> product = IntegerLinearProduct(node);
  if (!product.has_value()) return {};
  IntegerParams params = {.product = *product, .bias = product->addend};
  const std::optional<Factors> factors[] = {
      FactorsOf(node, 2, product->m), FactorsOf(node, 3, product->n),
      FactorsOf(node, 4, product->m), FactorsOf(node, 5, product->n)};
  for (const std::optional<Factors>& some : factors) {
    if (!some.has_value()) return {};
  }
  params.a_scale = *factors[0];
  params.b_scale = *factors[1];
  params.a_zero = *factors[2];
  params.b_zero = *factors[3];
  return IntegerCandidates(target, node, params);
}

std::vector<Candidate> PlanMatMulInteger(const CpuTarget& target, const NodeView& node) {
  const std::optional<Product> product = MatMulProduct(node);
  if (!product.has_value()) return {};
  // Zero points of rows belong to each matrix of a stack; one matrix of all rows would need them
  // repeated.
  const int64_t rows = node.rank(0) < 2 ? 1 : node.shape(0)[node.rank(0) - 2];
  const std::optional<Factors> a_zero = FactorsOf(node, 2, rows);
  const std::optional<Factors> b_zero = FactorsOf(node, 3, product->n);
  if (!a_zero.has_value() || !b_zero.has_value()) return {};
  if (a_zero->step != 0 && rows != product->m) return {};
  return IntegerCandidates(target, node,
                           {.product = *product, .a_zero = *a_zero, .b_zero = *b_zero});
}

}  // namespace reprise::cpu
