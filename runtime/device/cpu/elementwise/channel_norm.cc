#include "runtime/device/cpu/elementwise/channel_norm.h"

#include <algorithm>
#include <cmath>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/elementwise/channel_norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
// Vectors at a time: enough sums to wait for none.
constexpr int kVectors = 4;
// Elements that are summed as floats.
constexpr int64_t kChunk = 256 * kLanes;

// Returns the sum of (x - shift)^2, or of x, over up to kChunk elements.
template <bool kSquares>
HWY_INLINE float ChunkSum(const float* HWY_RESTRICT x, int64_t size, VF shift) {
  const F32 d;
  const auto term = [&](VF v) HWY_ATTR {
    if constexpr (!kSquares) return v;
    const VF centred = hn::Sub(v, shift);
    return hn::Mul(centred, centred);
  };
  VF sums[kVectors];
  HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  int64_t i = 0;
  for (; i + kVectors * kLanes <= size; i += kVectors * kLanes) {
    HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
      sums[v] = hn::Add(sums[v], term(hn::LoadU(d, x + i + v * kLanes)));
    }
  }
  for (; i + kLanes <= size; i += kLanes) sums[0] = hn::Add(sums[0], term(hn::LoadU(d, x + i)));
  if (i < size) {
    const VF last = term(LoadPart(d, x + i, size - i));
    sums[1] =
        hn::Add(sums[1], hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(size - i)), last));
  }
  const VF sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <bool kSquares>
double Sum(const float* x, int64_t size, float shift) {
  const VF shifts = hn::Set(F32(), shift);
  double sum = 0;
  for (int64_t i = 0; i < size; i += kChunk) {
    sum += ChunkSum<kSquares>(x + i, std::min(kChunk, size - i), shifts);
  }
  return sum;
}

// y = (x - mean) * inverse * scale + bias, step by step.
HWY_INLINE void Apply(const float* x, int64_t size, float mean, float inverse, float scale,
                      float bias, float* y) {
  const F32 d;
  const VF means = hn::Set(d, mean), inverses = hn::Set(d, inverse);
  const VF scales = hn::Set(d, scale), biases = hn::Set(d, bias);
  const auto apply = [&](VF v) HWY_ATTR {
    return hn::MulAdd(hn::Mul(hn::Sub(v, means), inverses), scales, biases);
  };
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) hn::StoreU(apply(hn::LoadU(d, x + i)), d, y + i);
  if (i < size) StorePart(apply(LoadPart(d, x + i, size - i)), d, y + i, size - i);
}

void Norm(const ChannelNormArgs& args, int64_t begin, int64_t end) {
  const int64_t size = args.channels * args.plane;
  for (int64_t group = begin; group < end; ++group) {
    const float* x = args.x + group * size;
    float* y = args.y + group * size;
    const auto mean = static_cast<float>(Sum<false>(x, size, 0) / static_cast<double>(size));
    const double variance = Sum<true>(x, size, mean) / static_cast<double>(size);
    const auto inverse = static_cast<float>(1 / std::sqrt(variance + double{args.epsilon}));
    for (int64_t channel = 0; channel < args.channels; ++channel) {
      const int64_t of_element = group % args.groups * args.channels + channel;
      Apply(x + channel * args.plane, args.plane, mean, inverse, args.scale[of_element],
            args.bias[of_element], y + channel * args.plane);
    }
  }
}

void Averages(const float* x, int64_t plane, float* y, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    y[row] = static_cast<float>(Sum<false>(x + row * plane, plane, 0) / static_cast<double>(plane));
  }
}

}  // namespace

constexpr ChannelNormKernels kChannelNormKernels = {Norm, Averages};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ChannelNormKernels& ChannelNormKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kChannelNormKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
