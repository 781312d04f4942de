#include "tests/bench/kernels/peak.h"

#include <algorithm>
#include <chrono>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/kernels/peak.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double MeasurePeak() {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;  // Latency 4 times 2 units is 8; some more do no harm.
  constexpr int64_t kSteps = 2000000;
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    hn::Vec<hn::ScalableTag<float>> acc[kChains];
    HWY_UNROLL(12) for (int i = 0; i < kChains; ++i) acc[i] = hn::Set(d, 0.001f * i);
    const auto x = hn::Set(d, 0.999f);
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t step = 0; step < kSteps; ++step) {
      HWY_UNROLL(12) for (int i = 0; i < kChains; ++i) acc[i] = hn::MulAdd(acc[i], x, x);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    auto sum = acc[0];
    HWY_UNROLL(12) for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, acc[i]);
    // The sum is used so that the loop cannot be left out.
    volatile float sink = hn::GetLane(sum);
    static_cast<void>(sink);
    best = std::max(best, 2e-9 * kChains * kSteps * hn::Lanes(d) / seconds.count());
  }
  return best;
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

double PeakGflops(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, MeasurePeak()); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
