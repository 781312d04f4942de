#include "runtime/device/cpu/conv/im2col_panels.h"

#include <algorithm>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/im2col_panels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Copies neighbouring windows of one row of windows and one panel: for each channel and tap,
// `length` columns of the panel from `to` on are the floats from `from` on. Where a whole number of
// vectors fits into the panel's row, the last vector may write past `length`, which the next run
// overwrites.
template <int kVecs>
HWY_INLINE void CopyRun(const Strips& s, const CopiedWindows& windows, const float* from,
                        int64_t length, bool fits, float* to) {
  const F32 d;
  const int64_t taps = s.num_taps();
  const int64_t* HWY_RESTRICT offsets = s.taps.data();
  const int64_t live = fits ? kLanes : length - (kVecs - 1) * kLanes;
  for (int64_t channel = 0; channel < windows.channels; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap, to += kPanel) {
      const float* HWY_RESTRICT at = from + offsets[tap];
      HWY_UNROLL(4) for (int v = 0; v + 1 < kVecs; ++v) {
        hn::StoreU(hn::LoadU(d, at + v * kLanes), d, to + v * kLanes);
      }
      constexpr int64_t kLast = (kVecs - 1) * kLanes;
      const VF last = hn::LoadU(d, at + kLast);
      if (live == kLanes) {
        hn::StoreU(last, d, to + kLast);
      } else {
        StorePart(last, d, to + kLast, live);
      }
    }
    from += windows.copy_floats;
  }
}

void Panels(const Strips& s, const CopiedWindows& windows, float* panels) {
  const int64_t depth = windows.channels * s.num_taps();
  for (int64_t column = 0, length; column < windows.count; column += length) {
    const int64_t window = windows.first + column;
    const int64_t row = window / s.out.columns, x = window % s.out.columns;
    const int64_t at = column % kPanel;
    // It ends with a row of windows, or with a panel.
    length = std::min({windows.count - column, kPanel - at, s.out.columns - x});
    const float* from = windows.copies + (row - windows.first_row) * s.stride.rows * s.line +
                        (x - windows.first_column);
    float* to = panels + (column - at) * depth + at;
    const int64_t vectors = (length + kLanes - 1) / kLanes;
    const bool fits = at + vectors * kLanes <= kPanel;
    if (vectors == 1) {
      CopyRun<1>(s, windows, from, length, fits, to);
    } else if (vectors == 2) {
      CopyRun<2>(s, windows, from, length, fits, to);
    } else {
      CopyRun<kVectors>(s, windows, from, length, fits, to);
    }
  }
  // The results after the last window are not read, but their operands must be initialised.
  const int64_t tail = windows.count % kPanel;
  if (tail == 0) return;
  float* to = panels + (windows.count - tail) * depth;
  for (int64_t i = 0; i < depth; ++i, to += kPanel) std::fill(to + tail, to + kPanel, 0.0f);
}

}  // namespace

constexpr ConvPanelKernels kConvPanelKernels = {Panels};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ConvPanelKernels& ConvPanelKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kConvPanelKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
