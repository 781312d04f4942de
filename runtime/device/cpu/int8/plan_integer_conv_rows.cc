// Convolutions of bytes whose result has its maps last: reprise.IntegerConv of the layouts "last"
// and "to_last", as products of rows by packed weights. Each window is a row (im2col). Where a
// window is one element of an NHWC operand, the rows are the operand itself; others are copied, a
// block at a time. Bias, residual, activation and requantization follow in registers.
#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/conv_finish.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/int8/byte_windows.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/int8/integer_conv_plan.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/quantized/integer_conv.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {
namespace {

// The limit on a block of rows, which lie in the L2 cache while the weights pass by.
constexpr int64_t kRowBlockBytes = 320 << 10;
constexpr int64_t kMostRows = 128;

struct ConvRowsParams : IntegerConvOperands {
  const U8S8Kernels* kernels = nullptr;
  ByteFinish finish;  // each launch sets its operands
  ByteWindows see;
  SeeByteWindows see_rows = nullptr;
  int64_t maps = 0;   // maps of one group
  int64_t block = 0;  // rows that are copied at a time
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;

  // Returns whether the rows are the operand's own.
  bool in_place() const { return see.x_last && see.rows.plain() && see.columns.plain(); }
  // Returns the depth of the products.
  int64_t depth() const { return in_place() ? see.depth() : see.whole_depth(); }
};

void RunConvRows(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvRowsParams*>(launch.params);
  const auto at = [&](int operand) -> const void* {
    return operand == kNoOperand ? nullptr : launch.operands[operand];
  };
  const auto floats = [&](int operand) { return static_cast<const float*>(at(operand)); };
  const auto bytes = [&](int operand) { return static_cast<const uint8_t*>(at(operand)); };
  const int parts = p.in_place() ? launch.parts : PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const int64_t rows = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.see.out_plane();
  const GemmPart mine = p.kernels->Partition(rows, p.maps, parts, launch.part);
  const int64_t all_maps = p.see.groups * p.maps;
  const uint8_t zero = p.x_zero == kNoOperand ? 0 : *bytes(p.x_zero);
  ByteFinish finish = p.finish;
  if (p.y_scale != kNoOperand) {
    finish.scale = floats(p.y_scale);
    finish.zero.data = bytes(p.y_scale + 1);
  }
  const int64_t element_bytes = finish.scale == nullptr ? int64_t{sizeof(float)} : 1;
  for (int64_t group = 0; group < p.see.groups; ++group) {
    const int64_t map = group * p.maps;
    auto* const out = static_cast<uint8_t*>(launch.operands[p.out]) + map * element_bytes;
    U8S8Args product = {
        .a = bytes(0) + group * p.see.channels,
        .lda = p.see.groups * p.see.channels,
        .a_signed = p.x_signed,
        .packed_b = bytes(1) + group * p.kernels->PackedBytes(p.depth(), p.maps),
        .b_signed = p.weights_signed,
        .c = out,
        .ldc = all_maps,
        .n = p.maps,
        .k = p.depth(),
        .a_zero = {at(p.x_zero), 0, p.x_signed},
        .b_zero = {p.w_zero == kNoOperand ? nullptr : bytes(p.w_zero) + (p.zero_a_map ? map : 0),
                   p.zero_a_map, p.weights_signed},
        .a_scale = floats(2),
        .b_scale = floats(3) + (p.scale_a_map ? map : 0),
        .b_scale_step = p.scale_a_map,
        .bias = p.bias == kNoOperand ? nullptr : floats(p.bias) + map,
        .residual = p.residual == kNoOperand ? nullptr : floats(p.residual) + map,
        .ld_residual = all_maps,
        .finish = &finish};
    if (p.in_place()) {
      p.kernels->part(product, mine);
      continue;
    }
    auto* const seen =
        static_cast<uint8_t*>(launch.operands[p.workspace]) + launch.part * p.scratch_bytes;
    if (mine.panel_begin == mine.panel_end) continue;
    const float* const residual = product.residual;
    for (int64_t first = mine.row_begin, count; first < mine.row_end; first += count) {
      count = std::min(p.block, mine.row_end - first);
      p.see_rows(p.see, bytes(0), group, first, count, zero, seen);
      product.a = seen;
      product.lda = p.see.row_bytes();
      product.c = out + first * all_maps * element_bytes;
      if (residual != nullptr) product.residual = residual + first * all_maps;
      p.kernels->part(product, {0, count, mine.panel_begin, mine.panel_end});
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> RunPackConvU8S8(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const U8S8Kernels& kernels = U8S8KernelsFor(call.target.isa);
  const Shape& shape = weights.shape();
  const int64_t groups = call.attributes.Int("groups", 1);
  if (!ops::IsByte(weights.dtype()) || shape.size() < 3 || groups < 1 || shape[0] % groups != 0 ||
      call.attributes.Int("panel", 0) != kernels.panel_columns) {
    return absl::InternalError(
        absl::StrCat(kPackConvU8S8Op, " of ", DTypeName(weights.dtype()), " ", ShapeToString(shape),
                     " in ", groups, " groups into panels of ", call.attributes.Int("panel", 0),
                     " columns on a device of ", kernels.panel_columns));
  }
  const int64_t maps = shape[0] / groups, channels = shape[1];
  const int64_t depth = NumElements(shape) / shape[0], taps = depth / channels;
  const bool channels_last = call.attributes.Int("channels_last", 0) != 0;
  // Zero rows follow the last one: their operands equal the zero point, so they add nothing.
  const int64_t whole = call.attributes.Int("depth", depth);
  const int64_t group_bytes = kernels.PackedBytes(whole, maps);
  std::shared_ptr<std::byte> packed =
      call.memory.Allocate(static_cast<size_t>(groups * group_bytes));
  std::vector<uint8_t> matrix(static_cast<size_t>(whole * maps));  // [whole, maps]
  for (int64_t group = 0; group < groups; ++group) {
    const auto* from = static_cast<const uint8_t*>(weights.data()) + group * maps * depth;
    for (int64_t map = 0; map < maps; ++map, from += depth) {
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t row = channels_last ? i % taps * channels + i / taps : i;
        matrix[row * maps + map] = from[i];
      }
    }
    kernels.pack({.data = matrix.data(), .ld = maps, .is_signed = weights.dtype() == DType::kInt8},
                 call.attributes.Int("a_signed", 0) != 0, whole, maps,
                 packed.get() + group * group_bytes);
  }
  return Tensor(DType::kUInt8, {groups * group_bytes}, std::move(packed));
}

std::vector<Candidate> PlanIntegerConvRows(const CpuTarget& target, const NodeView& node) {
  const absl::StatusOr<ops::ConvLayout> layout = ops::ConvLayoutOf(node.attributes());
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!layout.ok() || !layout->y_last || !activation.has_value() || !node.is_parameter(1)) {
    return {};
  }
  const Shape& weight = node.shape(1);
  const Shape x = layout->x_last ? ops::ChannelsFirst(node.shape(0)) : node.shape(0);
  const absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok() || x.size() > 4 || NumElements(x) == 0 || NumElements(weight) == 0 ||
      NumElements(node.out_shape()) == 0) {
    return {};
  }
  ConvRowsParams p;
  p.kernels = &U8S8KernelsFor(target.isa);
  p.see_rows = SeeByteWindowsFor(target.isa);
  p.finish = {.activation = *activation,
              .residual_first = true,
              .zero = {.is_signed = node.out_dtype() == DType::kInt8}};
  SetPlaneAxes(x, *windows, p.see.rows, p.see.columns);
  p.SetFrom(node);
  p.see.groups = IntegerConvOp::From(node.attributes()).group;
  p.see.channels = weight[1];
  p.maps = weight[0] / p.see.groups;
  p.see.x_last = layout->x_last;
  const int64_t tile = p.kernels->tile_rows;
  p.block = std::clamp(kRowBlockBytes / p.see.row_bytes() / tile * tile, tile, kMostRows);
  p.block = std::min(p.block, p.batch * p.see.out_plane());
  if (!p.in_place())
    p.scratch_bytes =
        static_cast<int64_t>(AlignUp(static_cast<size_t>(p.block * p.see.row_bytes())));
  p.scratch_parts = PartsWithWeights(target, p.scratch_bytes / 4);
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.depth());
  const auto workspace = static_cast<size_t>(p.scratch_bytes * p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0;
  const PrepareStep pack = {.input = 1,
                            .op = kPackConvU8S8Op,
                            .attributes = {{"a_signed", int64_t{p.x_signed}},
                                           {"channels_last", int64_t{p.see.x_last}},
                                           {"depth", p.depth()},
                                           {"groups", p.see.groups},
                                           {"panel", p.kernels->panel_columns}},
                            .dtype = DType::kUInt8,
                            .shape = {p.see.groups * p.kernels->PackedBytes(p.depth(), p.maps)}};
  Candidate candidate =
      MakeCandidate(target, node, "conv_rows_u8s8", RunConvRows, std::move(p), flops);
  KernelOption& option = candidate.option;
  option.kernel = absl::StrCat("conv_rows_u8s8_", IsaName(ByteTier(target.isa)));
  option.prepare.push_back(pack);
  option.workspace_bytes = workspace;
  option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
