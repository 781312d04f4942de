// Vectors of rows that hang over the edges of a plane. Included inside a kernel file after
// hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_INSIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_INSIDE_INL_H_
#undef REPRISE_CPU_INSIDE_INL_H_
#else
#define REPRISE_CPU_INSIDE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Lanes [begin, end) of the vector that begins at column `at`.
struct Inside {
  int64_t begin, end;
  bool whole() const { return begin == 0 && end == int64_t{HWY_LANES(float)}; }
};
inline Inside InsideOf(int64_t at, int64_t columns) {
  const int64_t end = std::clamp<int64_t>(columns - at, 0, HWY_LANES(float));
  return {std::clamp<int64_t>(-at, 0, end), end};
}

HWY_INLINE VF LoadInside(F32 d, const float* from, Inside inside, VF padding) {
  if (inside.whole()) return hn::LoadU(d, from);
  // On the scalar target a masked load reads even the lanes that it masks.
  if (inside.begin >= inside.end) return padding;
  const auto mask = hn::AndNot(hn::FirstN(d, static_cast<size_t>(inside.begin)),
                               hn::FirstN(d, static_cast<size_t>(inside.end)));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), padding);
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
