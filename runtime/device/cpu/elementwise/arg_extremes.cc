#include "runtime/device/cpu/elementwise/arg_extremes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/elementwise/arg_extremes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using Place = hn::Rebind<int32_t, F32>;
using VPlace = hn::Vec<Place>;
constexpr int kLanes = HWY_LANES(float);

// The best element so far and its place, lane by lane. The first element may be NaN and then stays
// the best; a later NaN never replaces one.
template <bool largest, bool last>
struct Best {
  HWY_INLINE void Offer(VF x, VPlace at) {
    const auto better = largest ? (last ? hn::Ge(x, value) : hn::Gt(x, value))
                                : (last ? hn::Le(x, value) : hn::Lt(x, value));
    value = hn::IfThenElse(better, x, value);
    place = hn::IfThenElse(hn::RebindMask(Place(), better), at, place);
  }

  VF value;
  VPlace place;
};

template <bool largest, bool last>
void PlacesOfColumns(const float* HWY_RESTRICT x, int64_t stride, int64_t rows, int64_t size,
                     int64_t* HWY_RESTRICT places) {
  const F32 d;
  const Place dp;
  // Vectors of neighbouring columns at a time: comparisons wait for the comparisons of the row
  // before.
  constexpr int kVectors = 4;
  constexpr int64_t kColumns = int64_t{kVectors} * kLanes;
  HWY_ALIGN int32_t found[kColumns];
  int64_t column = 0;
  for (; column + kColumns <= size; column += kColumns) {
    Best<largest, last> best[kVectors];
    HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
      best[v] = {hn::LoadU(d, x + column + v * kLanes), hn::Zero(dp)};
    }
    for (int64_t row = 1; row < rows; ++row) {
      const VPlace at = hn::Set(dp, static_cast<int32_t>(row));
      HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
        best[v].Offer(hn::LoadU(d, x + row * stride + column + v * kLanes), at);
      }
    }
    HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
      hn::Store(best[v].place, dp, found + v * kLanes);
    }
    for (int64_t i = 0; i < kColumns; ++i) places[column + i] = found[i];
  }
  for (int64_t count; column < size; column += count) {
    count = std::min<int64_t>(size - column, kLanes);
    Best<largest, last> best = {LoadPart(d, x + column, count), hn::Zero(dp)};
    for (int64_t row = 1; row < rows; ++row) {
      best.Offer(LoadPart(d, x + row * stride + column, count),
                 hn::Set(dp, static_cast<int32_t>(row)));
    }
    hn::Store(best.place, dp, found);
    for (int64_t i = 0; i < count; ++i) places[column + i] = found[i];
  }
}

template <bool largest, bool last>
int64_t PlaceInRow(const float* HWY_RESTRICT x, int64_t size) {
  const F32 d;
  const Place dp;
  // Every lane begins with the first element, so that NaN in it, and only there, wins in all.
  Best<largest, last> best = {hn::Set(d, x[0]), hn::Zero(dp)};
  const VPlace step = hn::Set(dp, kLanes);
  VPlace at = hn::Iota(dp, 0);
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    best.Offer(hn::LoadU(d, x + i), at);
    at = hn::Add(at, step);
  }
  HWY_ALIGN float values[kLanes];
  HWY_ALIGN int32_t places[kLanes];
  hn::Store(best.value, d, values);
  hn::Store(best.place, dp, places);
  const auto better = [](float a, float b) { return largest ? a > b : a < b; };
  float value = values[0];
  int64_t place = places[0];
  for (int lane = 1; lane < kLanes; ++lane) {
    const bool equal = values[lane] == value;
    if (better(values[lane], value) ||
        (equal && (last ? places[lane] > place : places[lane] < place))) {
      value = values[lane];
      place = places[lane];
    }
  }
  for (; i < size; ++i) {
    if (!better(x[i], value) && !(last && x[i] == value)) continue;
    value = x[i];
    place = i;
  }
  return place;
}

// Returns the same for a short row: first the best value is found, then its place.
template <bool largest, bool last>
HWY_INLINE int64_t PlaceInShortRow(const float* HWY_RESTRICT x, int64_t size) {
  const F32 d;
  const VF first = hn::Set(d, x[0]);
  const auto load = [&](int64_t i) HWY_ATTR {
    if (i + kLanes <= size) return hn::LoadU(d, x + i);
    return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(size - i)),
                          LoadPart(d, x + i, size - i), first);
  };
  VF best = first;
  for (int64_t i = 0; i < size; i += kLanes) {
    const VF v = load(i);
    best = hn::IfThenElse(largest ? hn::Gt(v, best) : hn::Lt(v, best), v, best);
  }
  best = largest ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best);
  // Past the end stands the first element again, which is found before.
  int64_t place = 0;
  for (int64_t i = 0; i < size; i += kLanes) {
    const auto found = hn::Eq(load(i), best);
    if constexpr (last) {
      uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, found, bytes);
      uint64_t bits;
      std::memcpy(&bits, bytes, sizeof(bits));
      if (size - i < kLanes) bits &= (uint64_t{1} << (size - i)) - 1;
      if (bits != 0) place = i + 63 - std::countl_zero(bits);
    } else {
      const auto at = hn::FindFirstTrue(d, found);
      if (at >= 0) return i + at;
    }
  }
  return place;
}

// Rows of up to this many vectors are short.
constexpr int64_t kShortRow = 8 * kLanes;

template <class Call>
HWY_INLINE void WithPlaceOf(PlaceOf of, const Call& call) {
  constexpr std::true_type kYes;
  constexpr std::false_type kNo;
  if (of.largest) {
    of.last ? call(kYes, kYes) : call(kYes, kNo);
  } else {
    of.last ? call(kNo, kYes) : call(kNo, kNo);
  }
}

void Columns(PlaceOf of, const float* x, int64_t stride, int64_t rows, int64_t size,
             int64_t* places) {
  WithPlaceOf(of, [&](auto largest, auto last)
                      HWY_ATTR { PlacesOfColumns<largest, last>(x, stride, rows, size, places); });
}

void Rows(PlaceOf of, const float* x, int64_t size, int64_t row_begin, int64_t row_end,
          int64_t* places) {
  WithPlaceOf(of, [&](auto largest, auto last) HWY_ATTR {
    for (int64_t row = row_begin; row < row_end; ++row) {
      const float* const at = x + row * size;
      places[row] = size <= kShortRow ? PlaceInShortRow<largest, last>(at, size)
                                      : PlaceInRow<largest, last>(at, size);
    }
  });
}

template <bool largest>
int64_t FirstBeyondBound(const float* HWY_RESTRICT x, int64_t begin, int64_t end, float bound) {
  const F32 d;
  const VF bounds = hn::Set(d, bound);
  // True of values that are certainly not beyond the bound; false of NaN.
  const auto within = [&](VF v)
                          HWY_ATTR { return largest ? hn::Le(v, bounds) : hn::Ge(v, bounds); };
  constexpr int kVectors = 4;
  int64_t i = begin;
  for (; i + kVectors * kLanes <= end; i += kVectors * kLanes) {
    auto all = within(hn::LoadU(d, x + i));
    HWY_UNROLL(4) for (int v = 1; v < kVectors; ++v) {
      all = hn::And(all, within(hn::LoadU(d, x + i + v * kLanes)));
    }
    if (!hn::AllTrue(d, all)) break;
  }
  for (; i < end; ++i) {
    if (!(largest ? x[i] <= bound : x[i] >= bound)) return i;
  }
  return end;
}

int64_t FirstBeyond(bool largest, const float* x, int64_t begin, int64_t end, float bound) {
  return largest ? FirstBeyondBound<true>(x, begin, end, bound)
                 : FirstBeyondBound<false>(x, begin, end, bound);
}

}  // namespace

constexpr PlaceKernels kPlaceKernels = {Columns, Rows, FirstBeyond};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const PlaceKernels& PlaceKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kPlaceKernels); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
