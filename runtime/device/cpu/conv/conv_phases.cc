#include "runtime/device/cpu/conv/conv_phases.h"

#include <algorithm>
#include <numeric>

namespace reprise::cpu {
namespace {

// Appends phase `phase` of dim `d` to the dims of `result`, whose taps so far are the taps of the
// dims in front. Tap k of element i of the operand is in position i * stride - pad + k * dilation
// of the result; position phase + j * stride so has the elements j + (phase + pad - k * dilation)
// / stride, of those taps for which that is whole.
void AddDim(const ops::TransposedWindows& transposed, size_t d, int64_t phase, ConvPhase& result) {
  const ops::Windows& w = transposed.windows;
  const int64_t stride = w.strides[d], dilation = w.dilations[d], kernel = w.kernel[d];
  const int64_t common = std::gcd(stride, dilation), step = stride / common;
  const int64_t at = phase + w.pad_begin[d];
  int64_t tap = 0;
  while (tap < std::min(kernel, step) && (at - tap * dilation) % stride != 0) ++tap;
  const int64_t count = tap < std::min(kernel, step) ? (kernel - 1 - tap) / step + 1 : 0;
  const int64_t last = tap + (count - 1) * step;
  const int64_t size = transposed.spatial[d];
  ops::Windows& windows = result.windows;
  result.first.push_back(phase);
  // Tap t of the phase is the tap last - t * step of the weight.
  std::vector<int64_t> offsets;
  for (const int64_t front : result.offsets) {
    for (int64_t t = 0; t < count; ++t) offsets.push_back(front * kernel + last - t * step);
  }
  result.offsets = std::move(offsets);
  windows.kernel.push_back(count);
  windows.strides.push_back(1);
  windows.dilations.push_back(dilation / common);
  windows.pad_begin.push_back(count == 0 ? 0 : (last * dilation - at) / stride);
  windows.pad_end.push_back(0);
  windows.out.push_back(size > phase ? (size - phase - 1) / stride + 1 : 0);
}

}  // namespace

std::vector<ConvPhase> PhasesOf(const ops::TransposedWindows& transposed) {
  const std::vector<int64_t>& strides = transposed.windows.strides;
  std::vector<ConvPhase> phases(NumElements(strides));
  for (size_t i = 0; i < phases.size(); ++i) {
    phases[i].offsets = {0};
    int64_t below = static_cast<int64_t>(phases.size()), rest = static_cast<int64_t>(i);
    for (size_t d = 0; d < strides.size(); ++d) {
      below /= strides[d];
      AddDim(transposed, d, rest / below, phases[i]);
      rest %= below;
    }
  }
  return phases;
}

void SplitIntoPhases(const std::vector<ConvPhase>& phases, const Shape& weight, int64_t groups,
                     const float* from, float* to) {
  const int64_t channels = weight[0] / groups, maps = weight[1];
  const int64_t taps = NumElements(weight) / std::max<int64_t>(1, weight[0] * maps);
  for (const ConvPhase& phase : phases) {
    for (int64_t map = 0; map < groups * maps; ++map) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t channel = map / maps * channels + c;
        const float* kernel = from + (channel * maps + map % maps) * taps;
        for (const int64_t offset : phase.offsets) *to++ = kernel[offset];
      }
    }
  }
}

}  // namespace reprise::cpu
