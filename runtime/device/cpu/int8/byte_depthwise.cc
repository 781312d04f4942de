#include "runtime/device/cpu/int8/byte_depthwise.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/byte_depthwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/int8/requantize_finish-inl.h"
#include "runtime/device/cpu/simd/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
using I32 = hn::RebindToSigned<F32>;
using VI = hn::Vec<I32>;

void Widen(const uint8_t* weights, const BytePoints& zero, int64_t taps, int64_t channels,
           int16_t* widened) {
  for (int64_t tap = 0; tap < taps + taps % 2; ++tap) {
    int16_t* const to = widened + tap / 2 * channels * 2 + tap % 2;
    if (tap == taps) {
      for (int64_t i = 0; i < channels; ++i) to[2 * i] = 0;
      continue;
    }
    const BytePoints of_tap = {weights + tap * channels, 1, zero.is_signed};
    for (int64_t i = 0; i < channels; ++i) {
      to[2 * i] = static_cast<int16_t>(of_tap.At(i) - zero.At(i));
    }
  }
}

// Bytes as numbers from 0 on: signed bytes count from -128.
HWY_INLINE VI Raised(const uint8_t* bytes, uint8_t flip) {
  const hn::Rebind<uint8_t, I32> d8;
  return hn::PromoteTo(I32(), hn::Xor(hn::LoadU(d8, bytes), hn::Set(d8, flip)));
}

// Returns the sums of kLanes channels from `channel` on.
HWY_INLINE VI Sums(const ByteDepthwise& conv, const uint8_t* const* seen, int64_t channel) {
  const I32 d;
  const uint8_t flip = conv.x_signed ? 0x80 : 0;
  const int zero = conv.x_zero + (conv.x_signed ? 128 : 0);
  VI sum = hn::Zero(d);
#if HWY_TARGET == HWY_SCALAR
  for (int64_t pair = 0; pair < conv.pairs; ++pair) {
    const int16_t* const weights = conv.weights + (pair * conv.channels + channel) * 2;
    for (int i = 0; i < 2; ++i) {
      const VI x = hn::Sub(Raised(seen[2 * pair + i] + channel, flip), hn::Set(d, zero));
      sum = hn::Add(sum, hn::Mul(x, hn::Set(d, int32_t{weights[i]})));
    }
  }
#else
  const hn::Repartition<int16_t, F32> d16;
  const auto zeros = hn::Set(d16, static_cast<int16_t>(zero));
  VI unused = hn::Zero(d);
  for (int64_t pair = 0; pair < conv.pairs; ++pair) {
    const VI first = Raised(seen[2 * pair] + channel, flip);
    const VI second = Raised(seen[2 * pair + 1] + channel, flip);
    const auto both = hn::BitCast(d16, hn::Or(first, hn::ShiftLeft<16>(second)));
    const auto weights = hn::LoadU(d16, conv.weights + (pair * conv.channels + channel) * 2);
    sum = hn::ReorderWidenMulAccumulate(d, hn::Sub(both, zeros), weights, sum, unused);
  }
#endif
  return sum;
}

template <Follows follows, bool kBytes>
HWY_NOINLINE void RunWindows(const ByteDepthwise& conv, const uint8_t* const* seen, int64_t windows,
                             const float* residual, void* y) {
  const F32 d;
  const ByteFinish& finish = conv.finish;
  const ByteSteps steps(kBytes ? *finish.scale : 1, finish.zero.At(0), finish.zero.is_signed);
  for (int64_t window = 0; window < windows; ++window, seen += 2 * conv.pairs) {
    const int64_t row = window * conv.channels;
    for (int64_t next = 0; next < conv.channels; next += kLanes) {
      // The last vector of a row starts early: some channels are computed twice.
      const int64_t channel = std::min(next, conv.channels - kLanes);
      VF x =
          hn::Mul(hn::ConvertTo(d, Sums(conv, seen, channel)), hn::LoadU(d, conv.scale + channel));
      if (conv.bias != nullptr) x = hn::Add(x, hn::LoadU(d, conv.bias + channel));
      if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual + row + channel));
      x = ActivateBy<follows>(d, x, finish.activation);
      if constexpr (kBytes) {
        steps.Store(x, static_cast<uint8_t*>(y) + row + channel);
      } else {
        hn::StoreU(x, d, static_cast<float*>(y) + row + channel);
      }
    }
  }
}

void RunConv(const ByteDepthwise& conv, const uint8_t* const* seen, int64_t windows,
             const float* residual, void* y) {
  WithFollows(conv.finish.activation, [&](auto follows) HWY_ATTR {
    if (conv.finish.scale == nullptr) {
      RunWindows<follows, false>(conv, seen, windows, residual, y);
    } else {
      RunWindows<follows, true>(conv, seen, windows, residual, y);
    }
  });
}

}  // namespace

constexpr ByteDepthwiseKernels kByteDepthwiseKernels = {Widen, RunConv};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ByteDepthwiseKernels& ByteDepthwiseKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kByteDepthwiseKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
