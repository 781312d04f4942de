// Convolutions of bytes: reprise.IntegerConv, as products of the maps' weights, which are read in
// place, and the bytes that a block of windows sees, a row for each channel and tap. Where a window
// is an element, these rows are the planes themselves. The sums become floats in registers; bias,
// residual and activation follow while the block lies in the cache.
#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/device/cpu/gemm/conv_finish.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/int8/integer_conv_plan.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {
namespace {

// The limit on the bytes of a block, which the tiles of all maps read.
constexpr int64_t kPanelBlockBytes = 384 << 10;
constexpr int64_t kMaxBlock = 960;

struct IntegerConvParams : IntegerConvOperands {
  const U8S8Kernels* kernels = nullptr;
  ConvFinish finish = nullptr;
  ConvActivation activation;
  PlaneAxis rows, columns;
  int64_t groups = 1;
  int64_t channels = 0, maps = 0;  // channels and maps of one group
  int64_t block = 0;               // windows, at most
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;

  bool plain() const { return rows.plain() && columns.plain(); }
  int64_t in_plane() const { return rows.in * columns.in; }
  int64_t out_plane() const { return rows.out * columns.out; }
  int64_t depth() const { return channels * rows.kernel * columns.kernel; }
  int64_t blocks() const { return (out_plane() + block - 1) / block; }  // blocks of one plane
  int64_t map_tiles() const { return (maps + kernels->tile_rows - 1) / kernels->tile_rows; }
  // Returns the pieces of a part's scratch, aligned to 64 bytes.
  int64_t PanelBytes() const {
    return static_cast<int64_t>(AlignUp(static_cast<size_t>(kernels->PanelBytes(depth()))));
  }
  int64_t SeenBytes() const {
    return plain() ? 0 : static_cast<int64_t>(AlignUp(static_cast<size_t>(depth() * block)));
  }
};

// Copies the bytes of the planes at `x` under windows [first, first + count): for each channel
// and tap a row of `ld` bytes, with `zero` where a tap lies in the padding.
void SeeBlock(const IntegerConvParams& p, const uint8_t* x, int64_t first, int64_t count,
              uint8_t zero, int64_t ld, uint8_t* seen) {
  const PlaneAxis &rows = p.rows, &columns = p.columns;
  const int64_t taps = rows.kernel * columns.kernel, stride = columns.stride;
  for (int64_t at = 0, length; at < count; at += length) {
    // Neighbours of one row of windows.
    const int64_t row = (first + at) / columns.out, column = (first + at) % columns.out;
    length = std::min(count - at, columns.out - column);
    for (int64_t tap = 0; tap < taps; ++tap) {
      uint8_t* to = seen + tap * ld + at;
      const int64_t y = rows.At(row, tap / columns.kernel);
      // The windows from `begin` to `end` see an element.
      const int64_t left = columns.At(column, tap % columns.kernel);
      const int64_t inside = (columns.in - left + stride - 1) / stride;
      int64_t begin = std::clamp<int64_t>((stride - 1 - left) / stride, 0, length);
      if (left >= 0) begin = 0;
      const int64_t end =
          y < 0 || y >= rows.in || left >= columns.in ? begin : std::clamp(inside, begin, length);
      const uint8_t* from = x + y * columns.in + left + begin * stride;
      for (int64_t channel = 0; channel < p.channels; ++channel, to += taps * ld) {
        for (int64_t i = 0; i < begin; ++i) to[i] = zero;
        if (begin < end) {
          if (stride == 1) {
            CopyBytes(from, end - begin, to + begin);
          } else {
            for (int64_t i = begin; i < end; ++i) to[i] = from[(i - begin) * stride];
          }
          from += p.in_plane();
        }
        for (int64_t i = end; i < length; ++i) to[i] = zero;
      }
    }
  }
}

// Runs units: a unit is a tile of the maps of a block of windows, of one group of one element.
void RunIntegerConv(const LaunchArgs& launch) {
  const auto& p = *static_cast<const IntegerConvParams*>(launch.params);
  const auto at = [&](int operand) -> const void* {
    return operand == kNoOperand ? nullptr : launch.operands[operand];
  };
  const auto floats = [&](int operand) { return static_cast<const float*>(at(operand)); };
  const auto bytes = [&](int operand) { return static_cast<const uint8_t*>(at(operand)); };
  const int64_t blocks = p.blocks(), tiles = p.map_tiles();
  const int64_t all_blocks = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.groups * blocks;
  const int parts = static_cast<int>(
      std::min<int64_t>(all_blocks * tiles, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  auto* const panel =
      static_cast<uint8_t*>(launch.operands[p.workspace]) + launch.part * p.scratch_bytes;
  uint8_t* const seen = panel + p.PanelBytes();
  const int64_t grain = all_blocks < kFewConvBlocks * parts ? 1 : tiles;
  const ItemRange units = RangeOfPart(all_blocks * tiles, grain, launch.part, parts);
  const uint8_t zero = p.x_zero == kNoOperand ? 0 : *bytes(p.x_zero);
  // The tiles of one block are one product.
  for (int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const int64_t index = unit / tiles;
    next = std::min(units.end, (index + 1) * tiles);
    const int64_t first = index % blocks * p.block;
    const int64_t count = std::min(p.block, p.out_plane() - first);
    const int64_t slab = index / blocks;  // a group of one element of the batch
    const int64_t map = slab % p.groups * p.maps;
    const int64_t result = slab * p.maps * p.out_plane() + first;
    const GemmPart part = {(unit - index * tiles) * p.kernels->tile_rows,
                           std::min(p.maps, (next - index * tiles) * p.kernels->tile_rows), 0,
                           p.kernels->Panels(count)};
    const uint8_t* const x = bytes(0) + slab * p.channels * p.in_plane();
    ByteSource source = {.data = x + first, .ld = p.in_plane(), .is_signed = p.x_signed};
    if (!p.plain()) {
      SeeBlock(p, x, first, count, zero, count, seen);
      source.data = seen;
      source.ld = count;
    }
    float* const out = static_cast<float*>(launch.operands[p.out]) + result;
    const U8S8Args product = {
        .a = bytes(1) + map * p.depth(),
        .lda = p.depth(),
        .a_signed = p.weights_signed,
        .b_signed = p.x_signed,
        .c = out,
        .ldc = p.out_plane(),
        .n = count,
        .k = p.depth(),
        .a_zero = {p.w_zero == kNoOperand ? nullptr : bytes(p.w_zero) + (p.zero_a_map ? map : 0),
                   p.zero_a_map, p.weights_signed},
        .b_zero = {at(p.x_zero), 0, p.x_signed},
        .a_scale = floats(3) + (p.scale_a_map ? map : 0),
        .a_scale_step = p.scale_a_map,
        .b_scale = floats(2)};
    p.kernels->unpacked(product, source, part, panel);
    const int64_t row = part.row_begin;
    ConvRows finished = {.y = out + row * p.out_plane(),
                         .ld = p.out_plane(),
                         .rows = part.row_end - row,
                         .columns = count,
                         .ld_residual = p.out_plane()};
    if (p.bias != kNoOperand) finished.bias = floats(p.bias) + map + row;
    if (p.residual != kNoOperand) {
      finished.residual = floats(p.residual) + result + row * p.out_plane();
    }
    p.finish(finished, p.activation);
  }
}

}  // namespace

std::vector<Candidate> PlanIntegerConv(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kScaleOfResult = IntegerConvOp::kYScale;
  if (IntegerConvOp::From(node.attributes()).layout != "first" || node.has_input(kScaleOfResult)) {
    return {};
  }
  const Shape &x = node.shape(0), &weight = node.shape(1);
  const absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!windows.ok() || !activation.has_value() || x.size() > 4 || NumElements(x) == 0 ||
      NumElements(weight) == 0 || NumElements(node.out_shape()) == 0) {
    return {};
  }
  IntegerConvParams p;
  p.kernels = &U8S8KernelsFor(target.isa);
  p.finish = ConvFinishFor(target.isa);
  p.activation = *activation;
  SetPlaneAxes(x, *windows, p.rows, p.columns);
  p.SetFrom(node);
  p.groups = IntegerConvOp::From(node.attributes()).group;
  p.channels = weight[1];
  p.maps = weight[0] / p.groups;
  const int64_t panel = p.kernels->panel_columns;
  const int64_t most = std::clamp(kPanelBlockBytes / p.depth(), panel, kMaxBlock);
  p.block = std::min(most / panel * panel, p.out_plane());
  p.scratch_bytes = p.PanelBytes() + p.SeenBytes();
  p.scratch_parts = PartsWithWeights(target, p.scratch_bytes / 4);
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.depth());
  const int64_t units = p.batch * p.groups * p.blocks() * p.map_tiles();
  const auto workspace =
      static_cast<size_t>(p.scratch_bytes * std::min<int64_t>(units, p.scratch_parts));
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate =
      MakeCandidate(target, node, "conv_u8s8", RunIntegerConv, std::move(p), flops);
  candidate.option.kernel = absl::StrCat("conv_u8s8_", IsaName(ByteTier(target.isa)));
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
