// Rows into columns, a vector's width at a time, in registers. Included inside a kernel file after
// math-inl.h.
#if defined(REPRISE_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_TRANSPOSE_INL_H_
#undef REPRISE_CPU_TRANSPOSE_INL_H_
#else
#define REPRISE_CPU_TRANSPOSE_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Loads four floats of each of HWY_LANES(float) rows: block b of the vector is from row 4 * b + i.
HWY_INLINE VF LoadQuarters(const float* const* rows, int i, int64_t column) {
  const auto quarter = [&](int b) HWY_ATTR { return _mm_loadu_ps(rows[4 * b + i] + column); };
#if HWY_TARGET == HWY_AVX3
  __m512 v = _mm512_castps128_ps512(quarter(0));
  v = _mm512_insertf32x4(v, quarter(1), 1);
  v = _mm512_insertf32x4(v, quarter(2), 2);
  return VF{_mm512_insertf32x4(v, quarter(3), 3)};
#else
  return VF{_mm256_insertf128_ps(_mm256_castps128_ps256(quarter(0)), quarter(1), 1)};
#endif
}
#endif

// to[c * stride + i] = rows[i][c], for c in [0, columns) and every lane i, by way of `last`.
template <class Last>
HWY_INLINE void TransposeBy(F32 d, const float* const* rows, int64_t columns, const Last& last,
                            float* HWY_RESTRICT to, int64_t stride) {
  int64_t whole = 0;  // columns, by fours
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<double, F32> dd;
  whole = columns / 4 * 4;
  for (int64_t column = 0; column < whole; column += 4) {
    const VF v0 = LoadQuarters(rows, 0, column), v1 = LoadQuarters(rows, 1, column);
    const VF v2 = LoadQuarters(rows, 2, column), v3 = LoadQuarters(rows, 3, column);
    // A transposition of 4 x 4 within each block.
    const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, v0, v1));
    const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, v2, v3));
    const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, v0, v1));
    const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, v2, v3));
    float* out = to + column * stride;
    hn::StoreU(last(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23))), d, out);
    hn::StoreU(last(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23))), d, out + stride);
    hn::StoreU(last(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23))), d, out + 2 * stride);
    hn::StoreU(last(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23))), d, out + 3 * stride);
  }
#endif
  for (int64_t column = whole; column < columns; ++column) {
    HWY_ALIGN float lanes[HWY_LANES(float)];
    for (size_t i = 0; i < HWY_LANES(float); ++i) lanes[i] = rows[i][column];
    hn::StoreU(last(hn::Load(d, lanes)), d, to + column * stride);
  }
}

// Transposes rows, with each lane i times lane i of `scale`.
HWY_INLINE void TransposeRows(F32 d, const float* const* rows, int64_t columns, VF scale,
                              float* HWY_RESTRICT to, int64_t stride) {
  TransposeBy(
      d, rows, columns, [scale](VF x) HWY_ATTR { return hn::Mul(scale, x); }, to, stride);
}

// Bits as they are: words of 32 bits, whatever they hold.
HWY_INLINE void TransposeWords(F32 d, const float* const* rows, int64_t columns,
                               float* HWY_RESTRICT to, int64_t stride) {
  TransposeBy(
      d, rows, columns, [](VF x) HWY_ATTR { return x; }, to, stride);
}

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
