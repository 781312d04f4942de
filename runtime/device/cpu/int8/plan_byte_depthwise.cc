// Depthwise reprise.IntegerConv of the layout "last" (NHWC): as words of taps in the usual
// case, where weights are signed bytes without zero points and results are bytes, else tap by
// tap.
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/device/cpu/gemm/matmul_desc.h"
#include "runtime/device/cpu/int8/byte_depthwise.h"
#include "runtime/device/cpu/int8/byte_words.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/int8/integer_conv_plan.h"
#include "runtime/device/cpu/int8/packed_taps.h"
#include "runtime/device/cpu/int8/requantize_bounds.h"
#include "runtime/ops/quantized/integer_conv.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kMostDepthwiseTaps = 1 << 10;
// With fewer channels, the widest vector is longer than a row of channels.
constexpr int64_t kFewestChannels = 16;

struct ByteDepthwiseParams : IntegerConvOperands {
  const ByteDepthwiseKernels* kernels = nullptr;
  const ByteWordKernels* word_kernels = nullptr;
  PackedTaps packed;   // its words; each launch sets their operands
  ByteDepthwise conv;  // each launch sets its operands
  ops::Windows windows;
  int64_t in_rows = 1, in_columns = 1, out_rows = 1, out_columns = 1;
  int64_t taps = 0;
  int64_t scratch_bytes = 0;
  int scratch_parts = 0;

  // Returns the row of the plane that tap `tap` of the windows in row `row` of the result sees.
  int64_t RowOf(int64_t row, int64_t tap) const {
    if (windows.kernel.size() == 1) return 0;
    return row * windows.strides[0] - windows.pad_begin[0] + tap * windows.dilations[0];
  }
  // Returns the pieces of a part's scratch, aligned to 64 bytes: a row of channels in the padding;
  // then either weights, scales and the rows that a row of windows sees, or scales, biases and
  // first sums by blocks and the words that some windows see.
  int64_t PaddingBytes() const { return AlignedBytes(conv.channels); }
  int64_t WeightBytes() const { return AlignedBytes(conv.pairs * conv.channels * 4); }
  int64_t ScaleBytes() const { return AlignedBytes(BlockChannels(conv.channels) * 4); }
  int64_t SeenBytes() const { return AlignedBytes(out_columns * 2 * conv.pairs * 8); }
  int64_t ScratchBytes() const {
    const int64_t by_tap = WeightBytes() + ScaleBytes() + SeenBytes();
    const int64_t by_word = 3 * ScaleBytes() + packed.words.ScratchBytes(packed.widest);
    return PaddingBytes() + std::max(by_tap, by_word);
  }
};

// Finds the rows of channels that the windows of row `row` see in `plane`.
void SeeRow(const ByteDepthwiseParams& p, const uint8_t* plane, int64_t row, const uint8_t* padding,
            const uint8_t** seen) {
  const ops::Windows& w = p.windows;
  const size_t last = w.kernel.size() - 1;
  const int64_t step = 2 * p.conv.pairs, channels = p.conv.channels;
  for (int64_t tap = 0; tap < step; ++tap) {
    const bool is_tap = tap < p.taps;
    const int64_t down = tap / w.kernel[last];
    const int64_t y = p.RowOf(row, down);
    const bool inside = is_tap && y >= 0 && y < p.in_rows;
    const uint8_t* const from = plane + (inside ? y * p.in_columns * channels : 0);
    int64_t x = tap % w.kernel[last] * w.dilations[last] - w.pad_begin[last];
    for (int64_t column = 0; column < p.out_columns; ++column, x += w.strides[last]) {
      seen[column * step + tap] =
          inside && x >= 0 && x < p.in_columns ? from + x * channels : padding;
    }
  }
}

// Hands out pieces of the scratch that begins at `scratch`.
class Pieces {
 public:
  explicit Pieces(void* scratch) : next_(static_cast<std::byte*>(scratch)) {}
  template <class T>
  T* Take(int64_t bytes) {
    std::byte* const piece = next_;
    next_ += bytes;
    return reinterpret_cast<T*>(piece);
  }

 private:
  std::byte* next_;
};

// The operands of a launch and its share of the work.
struct Work {
  const void* at(int operand) const {
    return operand == kNoOperand ? nullptr : launch.operands[operand];
  }
  const float* floats(int operand) const { return static_cast<const float*>(at(operand)); }
  const uint8_t* bytes(int operand) const { return static_cast<const uint8_t*>(at(operand)); }
  float ScaleOf(int64_t channel) const {
    return *floats(2) * floats(3)[p.scale_a_map ? channel : 0];
  }
  int64_t PlaneOf(int64_t unit) const { return unit / p.out_rows * p.in_rows * p.in_columns; }

  const LaunchArgs& launch;
  const ByteDepthwiseParams& p;
  ByteFinish finish;
  const uint8_t* padding;
  Pieces scratch;   // the scratch after the padding
  ItemRange range;  // a unit is a row of windows
};

void RunTaps(Work work) {
  const ByteDepthwiseParams& p = work.p;
  ByteDepthwise conv = p.conv;
  const int64_t channels = conv.channels;
  auto* const weights = work.scratch.Take<int16_t>(p.WeightBytes());
  auto* const scales = work.scratch.Take<float>(p.ScaleBytes());
  auto* const seen = work.scratch.Take<const uint8_t*>(p.SeenBytes());
  conv.x_zero = BytePoints{work.padding, 0, conv.x_signed}.At(0);
  p.kernels->widen(work.bytes(1), {work.at(p.w_zero), p.zero_a_map, p.weights_signed}, p.taps,
                   channels, weights);
  for (int64_t i = 0; i < channels; ++i) scales[i] = work.ScaleOf(i);
  conv.weights = weights;
  conv.scale = scales;
  conv.bias = work.floats(p.bias);
  conv.finish = work.finish;
  const int64_t element_bytes = conv.finish.scale == nullptr ? int64_t{sizeof(float)} : 1;
  for (int64_t unit = work.range.begin; unit < work.range.end; ++unit) {
    SeeRow(p, work.bytes(0) + work.PlaneOf(unit) * channels, unit % p.out_rows, work.padding, seen);
    const int64_t result = unit * p.out_columns * channels;
    p.kernels->run(conv, seen, p.out_columns,
                   p.residual == kNoOperand ? nullptr : work.floats(p.residual) + result,
                   static_cast<std::byte*>(work.launch.operands[p.out]) + result * element_bytes);
  }
}

// Returns whether weights are packed as signed bytes without zero points, and the results of the
// epilogue are known not to be large.
bool FitsWords(const Work& work, const StepBounds& bounds) {
  const ByteDepthwiseParams& p = work.p;
  if (p.packed.widest == 0 || p.residual != kNoOperand || bounds.limit == 0) return false;
  const BytePoints points = {work.at(p.w_zero), p.zero_a_map, p.weights_signed};
  const int wanted = p.weights_signed ? 0 : 128;
  const float most = static_cast<float>(p.taps) * 65025.0f;  // 255 x 255 each
  const float* const bias = work.floats(p.bias);
  bool fits = true;
  for (int64_t i = 0; i < p.conv.channels; ++i) {
    const float largest =
        std::abs(work.ScaleOf(i)) * most + (bias == nullptr ? 0 : std::abs(bias[i]));
    fits &= points.At(i) == wanted && largest < bounds.limit;
  }
  return fits;
}

void RunWords(Work work, const StepBounds& bounds) {
  const ByteDepthwiseParams& p = work.p;
  ByteWords conv = p.packed.words;
  auto* const scales = work.scratch.Take<float>(p.ScaleBytes());
  auto* const biases = work.scratch.Take<float>(p.ScaleBytes());
  auto* const start = work.scratch.Take<int32_t>(p.ScaleBytes());
  auto* const seen = work.scratch.Take<uint8_t>(conv.ScratchBytes(p.packed.widest));
  const uint8_t* const packed = work.bytes(1) + p.packed.RawBytes();
  const auto* const sums = reinterpret_cast<const int32_t*>(packed + p.packed.WordBytes());
  const int zero = *work.padding ^ (conv.x_signed ? 0x80 : 0);  // as words have it
  const float* const bias = work.floats(p.bias);
  int64_t at = 0;
  ForByteBlocks(conv.channels, p.packed.widest, [&](int64_t first, int64_t width) {
    ForChannelsOfBlock(width, [&](int64_t i, int64_t channel) {
      scales[at + i] = work.ScaleOf(first + channel);
      biases[at + i] = bias == nullptr ? 0 : bias[first + channel];
      start[at + i] = -zero * sums[at + i];
    });
    at += width;
  });
  conv.weights = reinterpret_cast<const int8_t*>(packed);
  conv.start = start;
  conv.scale = scales;
  conv.bias = biases;
  conv.bounds = &bounds;
  const uint8_t* rows[kMostDepthwiseTaps + 4] = {};
  for (int64_t unit = work.range.begin; unit < work.range.end; ++unit) {
    const uint8_t* const plane = work.bytes(0) + work.PlaneOf(unit) * conv.channels;
    for (int64_t tap = 0; tap < conv.row_taps; ++tap) {
      const int64_t y = p.RowOf(unit % p.out_rows, tap);
      rows[tap] = y < 0 || y >= p.in_rows ? nullptr : plane + y * p.in_columns * conv.channels;
    }
    p.word_kernels->run(
        conv, rows, work.padding, seen,
        static_cast<uint8_t*>(work.launch.operands[p.out]) + unit * p.out_columns * conv.channels);
  }
}

void RunByteDepthwise(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ByteDepthwiseParams*>(launch.params);
  const int64_t units = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.out_rows;
  const int parts =
      static_cast<int>(std::min<int64_t>(units, PartsWithScratch(launch, p.scratch_parts)));
  if (launch.part >= parts) return;
  Work work = {.launch = launch,
               .p = p,
               .finish = p.conv.finish,
               .padding = nullptr,
               .scratch = Pieces(static_cast<std::byte*>(launch.operands[p.workspace]) +
                                 launch.part * p.scratch_bytes),
               .range = RangeOfPart(units, 1, launch.part, parts)};
  auto* const padding = work.scratch.Take<uint8_t>(p.PaddingBytes());
  std::fill_n(padding, p.conv.channels, p.x_zero == kNoOperand ? 0 : *work.bytes(p.x_zero));
  work.padding = padding;
  if (p.y_scale != kNoOperand) {
    work.finish.scale = work.floats(p.y_scale);
    work.finish.zero.data = work.bytes(p.y_scale + 1);
  }
  const StepBounds bounds(work.finish);
  return FitsWords(work, bounds) ? RunWords(work, bounds) : RunTaps(work);
}

}  // namespace

std::vector<Candidate> PlanByteDepthwise(const CpuTarget& target, const NodeView& node) {
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (IntegerConvOp::From(node.attributes()).layout != "last" || !activation.has_value() ||
      !node.is_parameter(1)) {
    return {};
  }
  const Shape& weight = node.shape(1);
  const Shape x = ops::ChannelsFirst(node.shape(0));
  const absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (!windows.ok() || x.size() > 4 || weight[1] != 1 || weight[0] != x[1] ||
      x[1] < kFewestChannels || NumElements(windows->kernel) > kMostDepthwiseTaps ||
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
  p.word_kernels = &ByteWordKernelsFor(target.isa);
  p.packed.widest = p.word_kernels->widest;
  p.packed.words = {.channels = x[1],
                    .row_taps = last == 0 ? 1 : windows->kernel[0],
                    .column_taps = windows->kernel[last],
                    .stride = windows->strides[last],
                    .dilation = windows->dilations[last],
                    .pad = windows->pad_begin[last],
                    .columns = p.in_columns,
                    .windows = p.out_columns,
                    .x_signed = p.x_signed};
  p.scratch_bytes = p.ScratchBytes();
  p.scratch_parts = target.scratch_parts;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.taps);
  const auto workspace = static_cast<size_t>(p.scratch_bytes * p.scratch_parts);
  const bool takes_live_rows = p.batch_rows > 0;
  const PrepareStep pack = {.input = 1,
                            .op = kPackTapsOp,
                            .attributes = {{"widest", p.packed.widest}},
                            .dtype = DType::kUInt8,
                            .shape = {p.packed.Bytes()}};
  Candidate candidate =
      MakeCandidate(target, node, "depthwise_bytes", RunByteDepthwise, std::move(p), flops);
  candidate.option.prepare.push_back(pack);
  candidate.option.workspace_bytes = workspace;
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
