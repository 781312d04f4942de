// Convolutions of bytes whose result has its maps last: reprise.IntegerConv of the layouts "last"
// and "to_last", as products of rows by packed weights. A row is what a window sees. Where a window
// is an element with its channels last, the rows are the operand itself; others are copied, a block
// at a time. Bias, residual, activation and the steps of the result follow in registers.
#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/conv_finish.h"
#include "runtime/device/cpu/gemm_u8s8.h"
#include "runtime/device/cpu/integer_conv_plan.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/plan_bytes.h"
#include "runtime/device/cpu/plan_conv.h"
#include "runtime/device/cpu/product.h"
#include "runtime/device/cpu/weight_memory.h"
#include "runtime/ops/integer_conv.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/windows.h"

namespace reprise::cpu {
namespace {

// Of a block of rows, which lie in the second-level cache while the weights pass by.
constexpr int64_t kBlockBytes = 320 << 10;
constexpr int64_t kMostRows = 128;

struct ConvRowsParams : IntegerConvOperands {
  const U8S8Kernels* kernels = nullptr;
  ByteFinish finish;  // without its operands
  PlaneAxis rows, columns;
  int64_t groups = 1;
  int64_t channels = 0, maps = 0;  // of a group
  bool x_last = false;
  int64_t block = 0;  // rows that are copied at a time
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;

  // The rows are those of the operand.
  bool in_place() const { return x_last && rows.plain() && columns.plain(); }
  int64_t in_plane() const { return rows.in * columns.in; }
  int64_t out_plane() const { return rows.out * columns.out; }
  int64_t depth() const { return channels * rows.kernel * columns.kernel; }
  // From a copied row to the next: what is copied at its end may reach over.
  int64_t row_bytes() const { return static_cast<int64_t>(AlignUp(depth() + 8, 16)); }
};

inline void Fill(uint8_t value, int64_t count, uint8_t* to) {
  if (count > 0) std::memset(to, value, static_cast<size_t>(count));
}

// A row of taps of one window: `length` bytes of each, those of neighbouring positions `step` bytes
// apart in `from`, which is the row of the plane. `from` null: all in the padding.
inline uint8_t* SeeTaps(const PlaneAxis& columns, int64_t window, const uint8_t* from, int64_t step,
                        int64_t length, uint8_t zero, uint8_t* to) {
  const int64_t taps = columns.kernel;
  if (from == nullptr) {
    Fill(zero, taps * length, to);
    return to + taps * length;
  }
  const int64_t first = columns.At(window, 0);
  if (columns.dilation == 1 && step == length) {
    const int64_t begin = std::clamp<int64_t>(-first, 0, taps);
    const int64_t end = std::clamp<int64_t>(columns.in - first, begin, taps);
    Fill(zero, begin * length, to);
    CopyBytes(from + (first + begin) * step, (end - begin) * length, to + begin * length);
    Fill(zero, (taps - end) * length, to + end * length);
    return to + taps * length;
  }
  for (int64_t tap = 0; tap < taps; ++tap, to += length) {
    const int64_t at = first + tap * columns.dilation;
    if (at < 0 || at >= columns.in) {
      Fill(zero, length, to);
    } else {
      CopyBytes(from + at * step, length, to);
    }
  }
  return to;
}

// What `count` windows from `first` on, counted through all planes, see of group `group`: rows in
// the order of the packed weights.
void SeeRows(const ConvRowsParams& p, const uint8_t* x, int64_t group, int64_t first, int64_t count,
             uint8_t zero, uint8_t* seen) {
  const int64_t all = p.groups * p.channels;
  int64_t element = first / p.out_plane(), at = first % p.out_plane();
  for (int64_t i = 0; i < count; ++i, seen += p.row_bytes()) {
    const int64_t row = at / p.columns.out, column = at % p.columns.out;
    const uint8_t* const plane = x + element * all * p.in_plane();
    uint8_t* to = seen;
    const auto row_of_tap = [&](const uint8_t* from, int64_t tap, int64_t step) -> const uint8_t* {
      const int64_t y = p.rows.At(row, tap);
      return y < 0 || y >= p.rows.in ? nullptr : from + y * p.columns.in * step;
    };
    if (p.x_last) {
      for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
        to = SeeTaps(p.columns, column, row_of_tap(plane + group * p.channels, tap, all), all,
                     p.channels, zero, to);
      }
    } else {
      for (int64_t channel = 0; channel < p.channels; ++channel) {
        const uint8_t* const from = plane + (group * p.channels + channel) * p.in_plane();
        for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
          to = SeeTaps(p.columns, column, row_of_tap(from, tap, 1), 1, 1, zero, to);
        }
      }
    }
    if (++at == p.out_plane()) {
      at = 0;
      ++element;
    }
  }
}

void RunConvRows(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvRowsParams*>(launch.params);
  const auto at = [&](int operand) -> const void* {
    return operand == kNoOperand ? nullptr : launch.operands[operand];
  };
  const auto floats = [&](int operand) { return static_cast<const float*>(at(operand)); };
  const auto bytes = [&](int operand) { return static_cast<const uint8_t*>(at(operand)); };
  const int parts = p.in_place() ? launch.parts : PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const int64_t rows = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.out_plane();
  const GemmPart mine = p.kernels->Partition(rows, p.maps, parts, launch.part);
  const int64_t all_maps = p.groups * p.maps;
  const uint8_t zero = p.x_zero == kNoOperand ? 0 : *bytes(p.x_zero);
  ByteFinish finish = p.finish;
  if (p.y_scale != kNoOperand) {
    finish.scale = floats(p.y_scale);
    finish.zero.data = bytes(p.y_scale + 1);
  }
  const int64_t element_bytes = finish.scale == nullptr ? int64_t{sizeof(float)} : 1;
  for (int64_t group = 0; group < p.groups; ++group) {
    const int64_t map = group * p.maps;
    auto* const out = static_cast<uint8_t*>(launch.operands[p.out]) + map * element_bytes;
    U8S8Args product = {
        .a = bytes(0) + group * p.channels,
        .lda = p.groups * p.channels,
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
      SeeRows(p, bytes(0), group, first, count, zero, seen);
      product.a = seen;
      product.lda = p.row_bytes();
      product.c = out + first * all_maps * element_bytes;
      if (residual != nullptr) product.residual = residual + first * all_maps;
      p.kernels->part(product, {0, count, mine.panel_begin, mine.panel_end});
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> RunPackConvU8S8(const CpuTarget& target, const Attributes& attributes,
                                       const Tensor& weights, WeightMemory& memory) {
  const U8S8Kernels& kernels = U8S8KernelsFor(target.isa);
  const Shape& shape = weights.shape();
  const int64_t groups = attributes.Int("groups", 1);
  if (!ops::IsByte(weights.dtype()) || shape.size() < 3 || groups < 1 || shape[0] % groups != 0 ||
      attributes.Int("panel", 0) != kernels.panel_columns) {
    return absl::InternalError(absl::StrCat(kPackConvU8S8Op, " of ", DTypeName(weights.dtype()),
                                            " ", ShapeToString(shape), " in ", groups,
                                            " groups into panels of ", attributes.Int("panel", 0),
                                            " columns on a device of ", kernels.panel_columns));
  }
  const int64_t maps = shape[0] / groups, channels = shape[1];
  const int64_t depth = NumElements(shape) / shape[0], taps = depth / channels;
  const bool channels_last = attributes.Int("channels_last", 0) != 0;
  const int64_t group_bytes = kernels.PackedBytes(depth, maps);
  std::shared_ptr<std::byte> packed = memory.Allocate(static_cast<size_t>(groups * group_bytes));
  std::vector<uint8_t> matrix(static_cast<size_t>(depth * maps));  // [depth, maps]
  for (int64_t group = 0; group < groups; ++group) {
    const auto* from = static_cast<const uint8_t*>(weights.data()) + group * maps * depth;
    for (int64_t map = 0; map < maps; ++map, from += depth) {
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t row = channels_last ? i % taps * channels + i / taps : i;
        matrix[row * maps + map] = from[i];
      }
    }
    kernels.pack({.data = matrix.data(), .ld = maps, .is_signed = weights.dtype() == DType::kInt8},
                 attributes.Int("a_signed", 0) != 0, depth, maps,
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
  p.finish = {.activation = *activation,
              .residual_first = true,
              .zero = {.is_signed = node.out_dtype() == DType::kInt8}};
  SetPlaneAxes(x, *windows, p.rows, p.columns);
  p.SetFrom(node);
  p.groups = node.attributes().Int("group", 1);
  p.channels = weight[1];
  p.maps = weight[0] / p.groups;
  p.x_last = layout->x_last;
  const int64_t tile = p.kernels->tile_rows;
  p.block = std::clamp(kBlockBytes / p.row_bytes() / tile * tile, tile, kMostRows);
  p.block = std::min(p.block, p.batch * p.out_plane());
  if (!p.in_place()) p.scratch_bytes = static_cast<int64_t>(AlignUp(p.block * p.row_bytes()));
  p.scratch_parts = PartsWithWeights(target, p.scratch_bytes / 4);
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.depth());
  const auto workspace = static_cast<size_t>(p.scratch_bytes * p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0;
  const PrepareStep pack = {.input = 1,
                            .op = kPackConvU8S8Op,
                            .attributes = {{"a_signed", int64_t{p.x_signed}},
                                           {"channels_last", int64_t{p.x_last}},
                                           {"groups", p.groups},
                                           {"panel", p.kernels->panel_columns}},
                            .dtype = DType::kUInt8,
                            .shape = {p.groups * p.kernels->PackedBytes(p.depth(), p.maps)}};
  Candidate candidate =
      MakeCandidate(target, node, "conv_rows_u8s8", RunConvRows, std::move(p), flops);
  KernelOption& option = candidate.option;
  option.kernel = absl::StrCat("conv_rows_u8s8_", IsaName(std::min(target.isa, Isa::kAvx512Vnni)));
  option.prepare.push_back(pack);
  option.workspace_bytes = workspace;
  option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
