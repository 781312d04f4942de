#include "runtime/device/cpu/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/elementwise/elementwise.h"
#include "runtime/device/cpu/simd/targets.h"

#ifndef REPRISE_RATE_KERNELS
#define REPRISE_RATE_KERNELS
namespace reprise::cpu {
namespace {

struct RateKernels {
  double (*multiply_adds)(int64_t steps);  // 1e9 operations a second
  float (*sum)(const float* x, size_t count);
};

}  // namespace
}  // namespace reprise::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/machine_peak.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Multiply-adds a second, in 1e9, of one run of `steps` steps.
double RunMultiplyAdds(int64_t steps) {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;  // Latency 4 times 2 units is 8; some more do no harm.
  hn::Vec<hn::ScalableTag<float>> acc[kChains];
  HWY_UNROLL(12) for (int i = 0; i < kChains; ++i) acc[i] = hn::Set(d, 0.001f * i);
  const auto x = hn::Set(d, 0.999f);
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < steps; ++step) {
    HWY_UNROLL(12) for (int i = 0; i < kChains; ++i) acc[i] = hn::MulAdd(acc[i], x, x);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  auto sum = acc[0];
  HWY_UNROLL(12) for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, acc[i]);
  // The sum is used so that the loop cannot be left out.
  volatile float sink = hn::GetLane(sum);
  static_cast<void>(sink);
  return 2e-9 * kChains * static_cast<double>(steps * hn::Lanes(d)) / seconds.count();
}

// Returns the sum of `count` floats, a multiple of 8 vectors: as fast as they can be read.
float Sum(const float* HWY_RESTRICT x, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<hn::ScalableTag<float>> acc[8];
  HWY_UNROLL(8) for (int i = 0; i < 8; ++i) acc[i] = hn::Zero(d);
  for (size_t at = 0; at < count; at += 8 * lanes) {
    HWY_UNROLL(8) for (size_t i = 0; i < 8; ++i) {
      acc[i] = hn::Add(acc[i], hn::Load(d, x + at + i * lanes));
    }
  }
  HWY_UNROLL(8) for (int i = 1; i < 8; ++i) acc[0] = hn::Add(acc[0], acc[i]);
  return hn::GetLane(acc[0]);
}

}  // namespace

constexpr RateKernels kRateKernels = {RunMultiplyAdds, Sum};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {
namespace {

constexpr int kRuns = 8;
constexpr size_t kReadStep = 4096;  // a multiple of eight vectors of any width

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Returns the elements a second, in 1e9, of a function over an array in the L1 cache.
double FunctionRate(UnaryFunction function) {
  constexpr int64_t kCount = 2048;
  constexpr int kRepeats = 400;
  std::vector<float> x(kCount), y(kCount);
  for (int64_t i = 0; i < kCount; ++i) x[i] = 4.0f * static_cast<float>(i) / kCount - 2.0f;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int repeat = 0; repeat < kRepeats; ++repeat) function(x.data(), y.data(), kCount);
    best = std::max(best, 1e-9 * kCount * kRepeats / SecondsSince(begin));
  }
  return best;
}

}  // namespace

double MeasureGflops(Isa isa) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    best =
        std::max(best, REPRISE_CHOOSE_TARGET(isa, kRateKernels).multiply_adds(/*steps=*/400'000));
  }
  return best;
}

WeightReader::WeightReader(Isa isa, size_t bytes)
    : isa_(isa),
      bytes_(AlignUp(std::max<size_t>(bytes, 1), kReadStep)),
      block_(memory_.Allocate(bytes_)) {
  std::memset(block_.get(), 0, bytes_);
}

void WeightReader::Pass() const {
  const auto* floats = reinterpret_cast<const float*>(block_.get());
  // The sum is used so that reading cannot be left out.
  volatile float sink =
      REPRISE_CHOOSE_TARGET(isa_, kRateKernels).sum(floats, bytes_ / sizeof(float));
  static_cast<void>(sink);
}

double MeasureReadBandwidth(Isa isa, size_t bytes) {
  constexpr double kSecondsARun = 4e-3;
  const WeightReader reader(isa, bytes);
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    double read = 0, seconds = 0;
    do {
      reader.Pass();
      read += static_cast<double>(reader.bytes());
      seconds = SecondsSince(begin);
    } while (seconds < kSecondsARun);
    best = std::max(best, 1e-9 * read / seconds);
  }
  return best;
}

Roofline MeasureRoofline(Isa isa, size_t weight_bytes, size_t other_bytes) {
  const ElementwiseKernels& kernels = ElementwiseKernelsFor(isa);
  return {.gflops = MeasureGflops(isa),
          .gexps = FunctionRate(kernels.unary(Unary::kExp)),
          .gerfs = FunctionRate(kernels.unary(Unary::kErf)),
          .weight_gbytes = MeasureReadBandwidth(isa, weight_bytes),
          .other_gbytes = MeasureReadBandwidth(isa, other_bytes)};
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
