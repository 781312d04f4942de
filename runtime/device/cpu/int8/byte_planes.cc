#include "runtime/device/cpu/int8/byte_planes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/byte_planes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/conv_activation-inl.h"
#include "runtime/device/cpu/int8/requantize_steps-inl.h"
#include "runtime/device/cpu/simd/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

HWY_INLINE VF Floats(const ByteSum::Side& side, const uint8_t* bytes) {
  const F32 d;
  const hn::RebindToSigned<F32> d32;
  const hn::Rebind<uint8_t, F32> d8;
  // Signed bytes with the highest bit flipped count from -128.
  const auto raised =
      hn::Xor(hn::LoadU(d8, bytes), hn::Set(d8, static_cast<uint8_t>(side.is_signed ? 0x80 : 0)));
  const auto steps =
      hn::Sub(hn::PromoteTo(d32, raised), hn::Set(d32, side.zero + (side.is_signed ? 128 : 0)));
  return hn::Mul(hn::ConvertTo(d, steps), hn::Set(d, side.scale));
}

// Calls add(a, b, y) for `block` bytes at a time; of the last ones there are zeros after the live.
template <int64_t block, class AddBlock>
HWY_INLINE void ForBlocks(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t count,
                          const AddBlock& add) {
  int64_t i = 0;
  for (; i + block <= count; i += block) add(a + i, b + i, y + i);
  if constexpr (block > 1) {
    if (i == count) return;
    uint8_t left[block] = {}, right[block] = {}, to[block];
    std::memcpy(left, a + i, static_cast<size_t>(count - i));
    std::memcpy(right, b + i, static_cast<size_t>(count - i));
    add(left, right, to);
    std::memcpy(y + i, to, static_cast<size_t>(count - i));
  }
}

#if HWY_TARGET != HWY_SCALAR
using F32Steps = QuickSteps<F32>;
using V8 = F32Steps::V8;

// Bytes in the order of QuickSteps::Bytes, as floats.
class Dequantised {
 public:
  HWY_INLINE explicit Dequantised(const ByteSum::Side& side)
      : flip_(hn::Set(F32Steps::D8(), static_cast<uint8_t>(side.is_signed ? 0x80 : 0))),
        zero_(hn::Set(F32(), kOne + static_cast<float>(side.zero + (side.is_signed ? 128 : 0)))),
        scale_(hn::Set(F32(), side.scale)) {}

  HWY_INLINE void Floats(const uint8_t* bytes, VF (&x)[4]) const {
    const F32Steps::D8 d8;
    const hn::Repartition<uint16_t, F32> d16;
    const F32 d;
    const V8 raised = hn::Xor(flip_, hn::LoadU(d8, bytes));
    // With these upper bits a byte becomes the float kOne + byte.
    const auto above = hn::Set(d16, uint16_t{0x4B00});
    const auto low = hn::BitCast(d16, hn::InterleaveLower(d8, raised, hn::Zero(d8)));
    const auto high = hn::BitCast(d16, hn::InterleaveUpper(d8, raised, hn::Zero(d8)));
    x[0] = hn::BitCast(d, hn::InterleaveLower(d16, low, above));
    x[1] = hn::BitCast(d, hn::InterleaveUpper(d16, low, above));
    x[2] = hn::BitCast(d, hn::InterleaveLower(d16, high, above));
    x[3] = hn::BitCast(d, hn::InterleaveUpper(d16, high, above));
    HWY_UNROLL(4) for (int v = 0; v < 4; ++v) x[v] = hn::Mul(hn::Sub(x[v], zero_), scale_);
  }

 private:
  static constexpr float kOne = 0x1p23f;
  V8 flip_;
  VF zero_, scale_;
};

HWY_NOINLINE void AddQuickly(const ByteSum& sum, const StepBounds& bounds, const uint8_t* a,
                             const uint8_t* b, uint8_t* y, int64_t count) {
  const F32Steps steps(bounds);
  const Dequantised of_a(sum.a), of_b(sum.b);
  const auto add = [&](const uint8_t* left, const uint8_t* right, uint8_t* to) HWY_ATTR {
    VF p[4], q[4];
    of_a.Floats(left, p);
    of_b.Floats(right, q);
    F32Steps::VInt sums[4];
    HWY_UNROLL(4) for (int v = 0; v < 4; ++v) sums[v] = steps.Steps(hn::Add(p[v], q[v]));
    hn::StoreU(steps.Bytes(sums[0], sums[1], sums[2], sums[3]), F32Steps::D8(), to);
  };
  ForBlocks<4 * kLanes>(a, b, y, count, add);
}
#endif

template <ConvActivation::Kind kind>
HWY_NOINLINE void AddBytes(const ByteSum& sum, const uint8_t* a, const uint8_t* b, uint8_t* y,
                           int64_t count) {
  const F32 d;
  const ByteSteps steps(sum.y.scale, sum.y.zero, sum.y.is_signed);
  const auto add = [&](const uint8_t* left, const uint8_t* right, uint8_t* to) HWY_ATTR {
    const VF x = hn::Add(Floats(sum.a, left), Floats(sum.b, right));
    steps.Store(ActivateConv<kind>(d, x, sum.activation), to);
  };
  ForBlocks<kLanes>(a, b, y, count, add);
}

void Add(const ByteSum& sum, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t count) {
#if HWY_TARGET != HWY_SCALAR
  const auto zero = static_cast<uint8_t>(sum.y.zero);
  const StepBounds bounds(ByteFinish{
      .activation = sum.activation, .scale = &sum.y.scale, .zero = {&zero, 0, sum.y.is_signed}});
  if (255 * (std::abs(sum.a.scale) + std::abs(sum.b.scale)) < bounds.limit) {
    return AddQuickly(sum, bounds, a, b, y, count);
  }
#endif
  WithConvActivation(sum.activation.kind,
                     [&](auto kind) HWY_ATTR { AddBytes<kind>(sum, a, b, y, count); });
}

template <class T>
HWY_NOINLINE void LargestOf(const uint8_t* const* rows, int64_t count, int64_t bytes, uint8_t* y) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kBytes = HWY_LANES(T);
  const auto at = [&](int64_t row, int64_t i)
                      HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const T*>(rows[row] + i)); };
  int64_t i = 0;
  for (; i + kBytes <= bytes; i += kBytes) {
    auto largest = at(0, i);
    for (int64_t row = 1; row < count; ++row) largest = hn::Max(largest, at(row, i));
    hn::StoreU(largest, d, reinterpret_cast<T*>(y + i));
  }
  for (; i < bytes; ++i) {
    T largest = static_cast<T>(rows[0][i]);
    for (int64_t row = 1; row < count; ++row) {
      largest = std::max(largest, static_cast<T>(rows[row][i]));
    }
    y[i] = static_cast<uint8_t>(largest);
  }
}

void Largest(const uint8_t* const* rows, int64_t count, bool is_signed, int64_t bytes, uint8_t* y) {
  return is_signed ? LargestOf<int8_t>(rows, count, bytes, y)
                   : LargestOf<uint8_t>(rows, count, bytes, y);
}

void LookUp(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t count) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // Sixteen results at a time are looked up by the low half of a byte, and are 0 where the high one
  // is another's.
  const hn::ScalableTag<uint8_t> d;
  constexpr int64_t kBytes = HWY_LANES(uint8_t);
  constexpr int kPieces = 16, kPiece = 16;
  const auto piece = hn::Set(d, uint8_t{kPiece}), to_sign = hn::Set(d, uint8_t{0x80 - kPiece});
  for (; i + 2 * kBytes <= count; i += 2 * kBytes) {
    auto first = hn::LoadU(d, x + i), second = hn::LoadU(d, x + i + kBytes);
    auto a = hn::Zero(d), b = hn::Zero(d);
    HWY_UNROLL(16) for (int p = 0; p < kPieces; ++p) {
      const auto results = hn::LoadDup128(d, table + p * kPiece);
      a = hn::Or(a, hn::TableLookupBytesOr0(results, hn::SaturatedAdd(first, to_sign)));
      b = hn::Or(b, hn::TableLookupBytesOr0(results, hn::SaturatedAdd(second, to_sign)));
      first = hn::Sub(first, piece);
      second = hn::Sub(second, piece);
    }
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + i + kBytes);
  }
#endif
  for (; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace

constexpr BytePlaneKernels kBytePlaneKernels = {Add, Largest, LookUp};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const BytePlaneKernels& BytePlaneKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kBytePlaneKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
