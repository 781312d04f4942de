// Windows of 3 x 3, four neighbours at a time: Winograd's F(2 x 2, 3 x 3).
//
// A tile is 2 x 2 neighbouring windows, which see 4 x 4 elements. Elements and weights are each
// transformed into 16 forms; the products of one form over all channels are one GEMM, 16 in all,
// and sums of these are the four results: 16 multiplications where the windows have 36.
//
//   tile = A^T [ (G g G^T) * (B^T d B) ] A     (S. Winograd; A. Lavin and S. Gray,
//   arXiv:1509.09308)
//
// The forms of elements and results take additions alone and the forms of weights halvings, so
// that float32 stays as exact as in sums by window: a result is made of elements that its window
// sees and of no others. But an infinity is added and subtracted in several forms, so that windows
// that see it may be NaN where sums by window are infinite.
//
// Channels, or maps, lie side by side, and vectors run along them. Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/ops/windows/window_tiles.h"

namespace reprise::cpu {

inline constexpr int64_t kWinogradForms = ops::kTileForms;

struct WinogradKernels {
  // One tile: `seen` has the channels of its 4 x 4 elements, row by row; form f of them becomes
  // to[f * step + channel]. Pointers reach to the next whole vector.
  void (*elements)(const float* const* seen, int64_t channels, int64_t step, float* to);
  // The results of one tile: form f of their sums is sums[f * step + map]; window w of the 2 x 2
  // becomes to[w][map]. They reach as far.
  void (*results)(const float* sums, int64_t step, int64_t maps, float* const* to);
};

// Returns the kernels of the highest tier that is not above `isa`.
const WinogradKernels& WinogradKernelsFor(Isa isa);

// Computes the forms of `count` kernels of 3 x 3 that lie side by side: form f of kernel i becomes
// to[f * step + i].
void WinogradWeights(const float* kernels, int64_t count, int64_t step, float* to);

}  // namespace reprise::cpu
