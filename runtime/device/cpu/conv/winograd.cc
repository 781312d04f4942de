#include "runtime/device/cpu/conv/winograd.h"

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv/winograd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

// B^T d B, where B^T is
//   1  0 -1  0
//   0  1  1  0
//   0 -1  1  0
//   0  1  0 -1
void Elements(const float* const* seen, int64_t channels, int64_t step, float* HWY_RESTRICT to) {
  const F32 d;
  for (int64_t c = 0; c < channels; c += kLanes) {
    VF rows[4][4];
    HWY_UNROLL(4) for (int j = 0; j < 4; ++j) {
      const VF d0 = hn::LoadU(d, seen[j] + c), d1 = hn::LoadU(d, seen[4 + j] + c);
      const VF d2 = hn::LoadU(d, seen[8 + j] + c), d3 = hn::LoadU(d, seen[12 + j] + c);
      rows[0][j] = hn::Sub(d0, d2);
      rows[1][j] = hn::Add(d1, d2);
      rows[2][j] = hn::Sub(d2, d1);
      rows[3][j] = hn::Sub(d1, d3);
    }
    HWY_UNROLL(4) for (int i = 0; i < 4; ++i) {
      float* const form = to + 4 * i * step + c;
      hn::StoreU(hn::Sub(rows[i][0], rows[i][2]), d, form);
      hn::StoreU(hn::Add(rows[i][1], rows[i][2]), d, form + step);
      hn::StoreU(hn::Sub(rows[i][2], rows[i][1]), d, form + 2 * step);
      hn::StoreU(hn::Sub(rows[i][1], rows[i][3]), d, form + 3 * step);
    }
  }
}

// Computes A^T m A, where A^T is
//   1  1  1  0
//   0  1 -1 -1
void Results(const float* HWY_RESTRICT sums, int64_t step, int64_t maps, float* const* to) {
  const F32 d;
  float* HWY_RESTRICT const windows[4] = {to[0], to[1], to[2], to[3]};
  for (int64_t map = 0; map < maps; map += kLanes) {
    VF rows[2][4];
    HWY_UNROLL(4) for (int j = 0; j < 4; ++j) {
      const float* const form = sums + j * step + map;
      const VF m0 = hn::LoadU(d, form), m1 = hn::LoadU(d, form + 4 * step);
      const VF m2 = hn::LoadU(d, form + 8 * step), m3 = hn::LoadU(d, form + 12 * step);
      rows[0][j] = hn::Add(m0, hn::Add(m1, m2));
      rows[1][j] = hn::Sub(hn::Sub(m1, m2), m3);
    }
    HWY_UNROLL(2) for (int i = 0; i < 2; ++i) {
      hn::StoreU(hn::Add(rows[i][0], hn::Add(rows[i][1], rows[i][2])), d, windows[2 * i] + map);
      hn::StoreU(hn::Sub(hn::Sub(rows[i][1], rows[i][2]), rows[i][3]), d, windows[2 * i + 1] + map);
    }
  }
}

}  // namespace

constexpr WinogradKernels kWinogradKernels = {Elements, Results};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const WinogradKernels& WinogradKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kWinogradKernels);
}

// G g G^T, where G is
//   1    0    0
//   1/2  1/2  1/2
//   1/2 -1/2  1/2
//   0    0    1
void WinogradWeights(const float* kernels, int64_t count, int64_t step, float* to) {
  for (int64_t i = 0; i < count; ++i, kernels += 9) {
    double rows[4][3];
    for (int j = 0; j < 3; ++j) {
      const double g0 = kernels[j], g1 = kernels[3 + j], g2 = kernels[6 + j];
      rows[0][j] = g0;
      rows[1][j] = (g0 + g1 + g2) / 2;
      rows[2][j] = (g0 - g1 + g2) / 2;
      rows[3][j] = g2;
    }
    for (int row = 0; row < 4; ++row) {
      const double g0 = rows[row][0], g1 = rows[row][1], g2 = rows[row][2];
      float* const form = to + 4 * row * step + i;
      form[0] = static_cast<float>(g0);
      form[step] = static_cast<float>((g0 + g1 + g2) / 2);
      form[2 * step] = static_cast<float>((g0 - g1 + g2) / 2);
      form[3 * step] = static_cast<float>(g2);
    }
  }
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
