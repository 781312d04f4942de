// Convolutions of few NCHW channels with NHWC results: the first one of a model of images or
// spectra. The elements under a block of windows are copied once, with their padding; see
// conv_few_inputs.h. Sums equal the ones of plan_conv.cc to the bit.
#include <algorithm>

#include "runtime/device/cpu/conv/conv_few_inputs.h"
#include "runtime/device/cpu/conv/plan_conv.h"
#include "runtime/ops/windows/conv.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::cpu {
namespace {

// Rows of windows at a time, which share elements.
constexpr int64_t kMostRows = 4;
// The limit on the elements that the windows of a block see, in floats: they stay in the L2 cache.
// A single window may exceed it.
constexpr int64_t kMostCopied = 32 << 10;
constexpr int64_t kFewestBlockColumns = 16;

struct ConvToLastParams : ConvLaunch {
  const FewChannelKernels* kernels = nullptr;
  Strips strips;
  int64_t channels = 0, maps = 0;
  Strips::Extent block;       // the windows of a block
  Strips::Extent copied;      // the part of a plane that a block sees
  std::vector<int64_t> taps;  // offsets in the copy

  Strips::Extent blocks() const {
    return {(strips.out.rows + block.rows - 1) / block.rows,
            (strips.out.columns + block.columns - 1) / block.columns};
  }
};

// Returns the extent of a plane that a block of windows sees.
Strips::Extent ExtentSeenBy(const Strips& s, const Strips::Extent& block) {
  return {(block.rows - 1) * s.stride.rows + (s.kernel.rows - 1) * s.dilation.rows + 1,
          (block.columns - 1) * s.stride.columns + (s.kernel.columns - 1) * s.dilation.columns + 1};
}

// Takes as many rows, and of wide rows as many columns, as their copy has room for.
Strips::Extent ChooseBlock(const Strips& s, int64_t channels) {
  const auto fits = [&](const Strips::Extent& block) {
    const Strips::Extent seen = ExtentSeenBy(s, block);
    return channels * seen.rows * seen.columns <= kMostCopied;
  };
  Strips::Extent block = {Even(s.out.rows, kMostRows), s.out.columns};
  while (block.rows > 1 && !fits(block)) --block.rows;
  while (block.columns > kFewestBlockColumns && !fits(block))
    block.columns = (block.columns + 1) / 2;
  return block;
}

// Copies the elements of the planes at `x` that the windows of a block from `first` on see.
void CopySeen(const ConvToLastParams& p, const float* x, const Strips::Extent& first, float* copy) {
  const Strips& s = p.strips;
  const int64_t top = first.rows * s.stride.rows - s.pad.rows;
  const int64_t left = first.columns * s.stride.columns - s.pad.columns;
  const int64_t begin = std::clamp<int64_t>(-left, 0, p.copied.columns);
  const int64_t end = std::clamp(s.in.columns - left, begin, p.copied.columns);
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    for (int64_t i = 0; i < p.copied.rows; ++i) {
      const int64_t row = top + i;
      if (row < 0 || row >= s.in.rows) {
        copy = std::fill_n(copy, p.copied.columns, 0.0f);
        continue;
      }
      const float* const from = x + (channel * s.in.rows + row) * s.in.columns;
      copy = std::fill_n(copy, begin, 0.0f);
      if (end > begin) copy = std::copy_n(from + left + begin, end - begin, copy);
      copy = std::fill_n(copy, p.copied.columns - end, 0.0f);
    }
  }
}

// Runs units: a unit is a block of the windows of one element of the batch.
void RunConvToLast(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ConvToLastParams*>(launch.params);
  const Strips& s = p.strips;
  const Strips::Extent blocks = p.blocks();
  const int64_t of_element = blocks.rows * blocks.columns;
  const int64_t units = p.Live(launch) * of_element;
  const int parts = p.Parts(launch, units);
  if (launch.part >= parts) return;
  const ConvOperands at = p.Operands(launch);
  FewChannels of_row = {.stride = s.stride.columns,
                        .taps = p.taps.data(),
                        .num_taps = static_cast<int64_t>(p.taps.size()),
                        .weights = at.weights,
                        .maps = p.maps,
                        .bias = at.bias,
                        .bounded = p.OnlyClips(),
                        .low = p.activation.low,
                        .high = p.activation.high};
  const ItemRange range = RangeOfPart(units, 1, launch.part, parts);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t element = unit / of_element, block = unit % of_element;
    const Strips::Extent first = {block / blocks.columns * p.block.rows,
                                  block % blocks.columns * p.block.columns};
    const int64_t rows = std::min(p.block.rows, s.out.rows - first.rows);
    of_row.windows = std::min(p.block.columns, s.out.columns - first.columns);
    CopySeen(p, at.x + element * p.channels * s.in.rows * s.in.columns, first, at.scratch);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t window =
          (element * s.out.rows + first.rows + row) * s.out.columns + first.columns;
      of_row.x = at.scratch + row * s.stride.rows * p.copied.columns;
      of_row.y = at.out + window * p.maps;
      p.kernels->convolve(of_row);
      if (!of_row.bounded) p.FinishRun(at, window * p.maps, of_row.windows * p.maps);
    }
  }
}

}  // namespace

std::vector<Candidate> PlanConvToLast(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kMaxDims = 2;
  const Shape &x = node.shape(0), &weight = node.shape(1);
  absl::StatusOr<ops::Windows> windows =
      ops::WindowsOf(node.node(), x, std::vector<int64_t>(weight.begin() + 2, weight.end()));
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!windows.ok() || !activation.has_value() || NumElements(node.out_shape()) == 0 ||
      NumElements(x) == 0 || x.size() > kMaxDims + 2 || !node.is_parameter(1) ||
      ConvOp::From(node.attributes()).group != 1) {
    return {};
  }
  Shape spatial(x.begin() + 2, x.end());
  LayColumnsDown(*windows, spatial);
  ConvToLastParams p{ConvLaunch(target, node, *activation)};
  p.kernels = &FewChannelKernelsFor(target.isa);
  p.strips = StripsOf(*windows, spatial);
  const Strips& s = p.strips;
  p.channels = x[1];
  p.maps = weight[0];
  p.block = ChooseBlock(s, p.channels);
  p.copied = ExtentSeenBy(s, p.block);
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    for (int64_t i = 0; i < s.kernel.rows; ++i) {
      for (int64_t j = 0; j < s.kernel.columns; ++j) {
        p.taps.push_back((channel * p.copied.rows + i * s.dilation.rows) * p.copied.columns +
                         j * s.dilation.columns);
      }
    }
  }
  p.scratch_floats = p.channels * p.copied.rows * p.copied.columns;
  const double flops =
      2.0 * static_cast<double>(NumElements(node.out_shape())) * static_cast<double>(p.taps.size());
  return ConvCandidates(target, node, "conv_to_last", RunConvToLast, std::move(p), flops,
                        {MapsLast(weight, 1)});
}

}  // namespace reprise::cpu
