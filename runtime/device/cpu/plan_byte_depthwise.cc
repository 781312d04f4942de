// reprise.IntegerConv of the layout "last" where every map belongs to a channel of its own.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/byte_depthwise.h"
#include "runtime/device/cpu/integer_conv_plan.h"
#include "runtime/device/cpu/plan_bytes.h"
#include "runtime/device/cpu/product.h"
#include "runtime/device/cpu/weight_memory.h"
#include "runtime/ops/integer_conv.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/windows.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kMostTaps = 1 << 10;
// With fewer channels the widest vector is longer than a row of them.
constexpr int64_t kFewestChannels = 16;

struct ByteDepthwiseParams : IntegerConvOperands {
  const ByteDepthwiseKernels* kernels = nullptr;
  ByteDepthwise conv;  // without operands
  ops::Windows windows;
  int64_t in_rows = 1, in_columns = 1, out_rows = 1, out_columns = 1;
  int64_t taps = 0;
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;

  // The pieces of a part's scratch, aligned to 64 bytes: weights, scales, a row of channels in the
  // padding, what a row of windows sees.
  int64_t WeightBytes() const { return Aligned(conv.pairs * conv.channels * 4); }
  int64_t ScaleBytes() const { return Aligned(conv.channels * 4); }
  int64_t PaddingBytes() const { return Aligned(conv.channels); }
  int64_t SeenBytes() const { return Aligned(out_columns * 2 * conv.pairs * 8); }
  static int64_t Aligned(int64_t bytes) {
    return static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes)));
  }
};

// What the windows of row `row` see of `plane`: rows of channels.
void SeeRow(const ByteDepthwiseParams& p, const uint8_t* plane, int64_t row, const uint8_t* padding,
            const uint8_t** seen) {
  const ops::Windows& w = p.windows;
  const size_t last = w.kernel.size() - 1;
  const int64_t step = 2 * p.conv.pairs, channels = p.conv.channels;
  for (int64_t tap = 0; tap < step; ++tap) {
    const bool is_tap = tap < p.taps;
    const int64_t down = tap / w.kernel[last];
    const int64_t y = last == 0 ? 0 : row * w.strides[0] - w.pad_begin[0] + down * w.dilations[0];
    const bool inside = is_tap && y >= 0 && y < p.in_rows;
    const uint8_t* const from = plane + (inside ? y * p.in_columns * channels : 0);
    int64_t x = tap % w.kernel[last] * w.dilations[last] - w.pad_begin[last];
    for (int64_t column = 0; column < p.out_columns; ++column, x += w.strides[last]) {
      seen[column * step + tap] =
          inside && x >= 0 && x < p.in_columns ? from + x * channels : padding;
    }
  }
}

// A unit is a row of windows.
void RunByteDepthwise(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ByteDepthwiseParams*>(launch.params);
  const auto at = [&](int operand) -> const void* {
    return operand == kNoOperand ? nullptr : launch.operands[operand];
  };
  const auto floats = [&](int operand) { return static_cast<const float*>(at(operand)); };
  const auto bytes = [&](int operand) { return static_cast<const uint8_t*>(at(operand)); };
  const int64_t units = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.out_rows;
  const int parts =
      static_cast<int>(std::min<int64_t>(units, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  auto* scratch =
      static_cast<std::byte*>(launch.operands[p.workspace]) + launch.part * p.scratch_bytes;
  const auto take = [&](int64_t size) {
    std::byte* const piece = scratch;
    scratch += size;
    return static_cast<void*>(piece);
  };
  auto* const weights = static_cast<int16_t*>(take(p.WeightBytes()));
  auto* const scales = static_cast<float*>(take(p.ScaleBytes()));
  auto* const padding = static_cast<uint8_t*>(take(p.PaddingBytes()));
  auto* const seen = static_cast<const uint8_t**>(take(p.SeenBytes()));

  ByteDepthwise conv = p.conv;
  const int64_t channels = conv.channels;
  const uint8_t zero = p.x_zero == kNoOperand ? 0 : *bytes(p.x_zero);
  conv.x_zero = BytePoints{&zero, 0, conv.x_signed}.At(0);
  p.kernels->widen(bytes(1), {at(p.w_zero), p.zero_a_map, p.weights_signed}, p.taps, channels,
                   weights);
  for (int64_t i = 0; i < channels; ++i) {
    scales[i] = *floats(2) * floats(3)[p.scale_a_map ? i : 0];
  }
  std::fill_n(padding, channels, zero);
  conv.weights = weights;
  conv.scale = scales;
  conv.bias = floats(p.bias);
  if (p.y_scale != kNoOperand) {
    conv.finish.scale = floats(p.y_scale);
    conv.finish.zero.data = bytes(p.y_scale + 1);
  }
  const int64_t element_bytes = conv.finish.scale == nullptr ? int64_t{sizeof(float)} : 1;
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t plane = unit / p.out_rows * p.in_rows * p.in_columns;
    SeeRow(p, bytes(0) + plane * channels, unit % p.out_rows, padding, seen);
    const int64_t result = unit * p.out_columns * channels;
    p.kernels->run(conv, seen, p.out_columns,
                   p.residual == kNoOperand ? nullptr : floats(p.residual) + result,
                   static_cast<std::byte*>(launch.operands[p.out]) + result * element_bytes);
  }
}

}  // namespace

absl::StatusOr<Tensor> RunPackTaps(const Tensor& weights, WeightMemory& memory) {
  const Shape& shape = weights.shape();
  if (!ops::IsByte(weights.dtype()) || shape.size() < 3 || shape[1] != 1) {
    return absl::InternalError(
        absl::StrCat(kPackTapsOp, " of ", DTypeName(weights.dtype()), " ", ShapeToString(shape)));
  }
  const int64_t maps = shape[0], taps = NumElements(shape) / maps;
  std::shared_ptr<std::byte> packed = memory.Allocate(static_cast<size_t>(taps * maps));
  const auto* from = static_cast<const std::byte*>(weights.data());
  for (int64_t map = 0; map < maps; ++map) {
    for (int64_t tap = 0; tap < taps; ++tap) packed.get()[tap * maps + map] = *from++;
  }
  return Tensor(weights.dtype(), {taps, maps}, std::move(packed));
}

std::vector<Candidate> PlanByteDepthwise(const CpuTarget& target, const NodeView& node) {
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (node.attributes().String("layout", "first") != "last" || !activation.has_value() ||
      !node.is_parameter(1)) {
    return {};
  }
  const Shape& weight = node.shape(1);
  const Shape x = ops::ChannelsFirst(node.shape(0));
  const absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok() || x.size() > 4 || weight[1] != 1 || weight[0] != x[1] ||
      x[1] < kFewestChannels || NumElements(windows->kernel) > kMostTaps ||
      NumElements(node.shape(0)) == 0 || NumElements(node.out_shape()) == 0) {
    return {};
  }
  ByteDepthwiseParams p;
  p.kernels = &ByteDepthwiseKernelsFor(target.isa);
  p.windows = *windows;
  p.SetFrom(node);
  const size_t last = windows->out.size() - 1;
  p.in_columns = x.back();
  p.out_columns = windows->out[last];
  p.in_rows = last == 0 ? 1 : x[2];
  p.out_rows = last == 0 ? 1 : windows->out[0];
  p.taps = NumElements(windows->kernel);
  p.conv.channels = x[1];
  p.conv.pairs = (p.taps + 1) / 2;
  p.conv.x_signed = p.x_signed;
  p.conv.finish = {.activation = *activation,
                   .residual_first = true,
                   .zero = {.is_signed = node.out_dtype() == DType::kInt8}};
  p.scratch_bytes = p.WeightBytes() + p.ScaleBytes() + p.PaddingBytes() + p.SeenBytes();
  p.scratch_parts = target.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.taps);
  const auto workspace = static_cast<size_t>(p.scratch_bytes * p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0;
  const PrepareStep pack = {
      .input = 1, .op = kPackTapsOp, .dtype = node.dtype(1), .shape = {p.taps, p.conv.channels}};
  Candidate candidate =
      MakeCandidate(target, node, "depthwise_bytes", RunByteDepthwise, std::move(p), flops);
  candidate.option.prepare.push_back(pack);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
