// Words of four unsigned bytes times words of four signed ones, added to sums of 32 bits. Included
// inside a kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_BYTE_PRODUCTS_INL_H_
#undef REPRISE_CPU_BYTE_PRODUCTS_INL_H_
#else
#define REPRISE_CPU_BYTE_PRODUCTS_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE uint32_t LoadWord(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// How bytes are multiplied.
enum class Form { kWidened, kVnni };

// Whether this target's vectors have an instruction for it on some CPUs: AVX512_VNNI with
// AVX-512, AVX-VNNI with AVX2.
#define REPRISE_HAS_VNNI (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2)

#if REPRISE_HAS_VNNI
// For CPUs with VNNI. V holds unsigned words, because sums wrap around.
template <class V>
HWY_INLINE void AccumulateBytes(V& sum, V unsigned_bytes, V signed_bytes) {
  auto register_of_sum = sum.raw;
#if HWY_TARGET == HWY_AVX3
  asm("vpdpbusd %2, %1, %0"
      : "+v"(register_of_sum)
      : "v"(unsigned_bytes.raw), "v"(signed_bytes.raw));
#else
  asm("%{vex%} vpdpbusd %2, %1, %0"
      : "+x"(register_of_sum)
      : "x"(unsigned_bytes.raw), "x"(signed_bytes.raw));
#endif
  sum.raw = register_of_sum;
}

// Adds the products in words of two signed numbers of 16 bits.
template <class V>
HWY_INLINE void AccumulatePairs(V& sum, V a, V b) {
  auto register_of_sum = sum.raw;
#if HWY_TARGET == HWY_AVX3
  asm("vpdpwssd %2, %1, %0" : "+v"(register_of_sum) : "v"(a.raw), "v"(b.raw));
#else
  asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(register_of_sum) : "x"(a.raw), "x"(b.raw));
#endif
  sum.raw = register_of_sum;
}
#endif

#if HWY_TARGET == HWY_SCALAR
// The four bytes of a word, as numbers.
template <class V>
struct Wide {
  int32_t bytes[4];
};
template <bool kSigned, class V>
HWY_INLINE Wide<V> Widened(V words) {
  Wide<V> wide;
  for (int i = 0; i < 4; ++i) {
    const auto byte = static_cast<uint8_t>(words.raw >> (8 * i));
    wide.bytes[i] = kSigned ? static_cast<int8_t>(byte) : byte;
  }
  return wide;
}
template <class V>
HWY_INLINE void AccumulateWide(V& sum, const Wide<V>& a, const Wide<V>& b) {
  for (int i = 0; i < 4; ++i) sum.raw += static_cast<uint32_t>(a.bytes[i] * b.bytes[i]);
}
#else
// The even and the odd bytes of words, as int16.
template <class V>
struct Wide {
  hn::Vec<hn::Repartition<int16_t, hn::DFromV<V>>> even, odd;
};
template <bool kSigned, class V>
HWY_INLINE Wide<V> Widened(V words) {
  const hn::Repartition<int16_t, hn::DFromV<V>> d16;
  const hn::Repartition<uint16_t, hn::DFromV<V>> du16;
  if constexpr (kSigned) {
    const auto pairs = hn::BitCast(d16, words);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
  } else {
    const auto pairs = hn::BitCast(du16, words);
    return {hn::BitCast(d16, hn::And(pairs, hn::Set(du16, uint16_t{0xFF}))),
            hn::BitCast(d16, hn::ShiftRight<8>(pairs))};
  }
}
template <class V>
HWY_INLINE void AccumulateWide(V& sum, const Wide<V>& a, const Wide<V>& b) {
  const hn::DFromV<V> du;
  const hn::RebindToSigned<hn::DFromV<V>> d;
  auto unused = hn::Zero(d);
  auto total = hn::BitCast(d, sum);
  total = hn::ReorderWidenMulAccumulate(d, a.even, b.even, total, unused);
  total = hn::ReorderWidenMulAccumulate(d, a.odd, b.odd, total, unused);
  sum = hn::BitCast(du, total);
}
#endif

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
