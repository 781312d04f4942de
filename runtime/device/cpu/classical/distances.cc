#include "runtime/device/cpu/classical/distances.h"

#include <algorithm>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/classical/distances.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Of = hn::ScalableTag<T>;
template <typename T>
using VecOf = hn::Vec<Of<T>>;

constexpr int kRows = 4, kVectors = 2;

// The functors that add the contribution of a difference to its sum.
struct AddMagnitude {
  template <class V>
  HWY_INLINE V operator()(V sum, V difference, int64_t) const {
    return hn::Add(sum, hn::Abs(difference));
  }
};
struct AddSquare {
  template <class V>
  HWY_INLINE V operator()(V sum, V difference, int64_t) const {
    return hn::MulAdd(difference, difference, sum);
  }
};
struct AddPower {
  template <class V>
  HWY_INLINE V operator()(V sum, V difference, int64_t power) const {
    const V magnitude = hn::Abs(difference);
    V term = magnitude;
    for (int64_t i = 1; i < power; ++i) term = hn::Mul(term, magnitude);
    return hn::Add(sum, term);
  }
};

// `kCount` rows from `row` on, `live` columns of a tile from `column` on.
template <class Add, int kCount, typename T>
HWY_INLINE void Tile(const DistanceArgs<T>& args, int64_t row, int64_t column, int64_t live) {
  const Of<T> d;
  constexpr int64_t kLanes = HWY_LANES(T);
  VecOf<T> sums[kCount][kVectors];
  HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT x = args.x + row * args.size;
  const T* HWY_RESTRICT y = args.y + column;
  const bool whole = live >= kVectors * kLanes;
  // A vector without live columns must not touch memory. A mask alone does not ensure that: the
  // baseline target reads and writes its one lane whatever the mask.
  const auto has_part = [&](int v) HWY_ATTR { return live > v * kLanes; };
  const auto part = [&](int v) HWY_ATTR {
    return hn::FirstN(d, static_cast<size_t>(std::min(live - v * kLanes, kLanes)));
  };
  for (int64_t i = 0; i < args.size; ++i, y += args.columns) {
    VecOf<T> of[kVectors];
    HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) {
      of[v] = whole         ? hn::LoadU(d, y + v * kLanes)
              : has_part(v) ? hn::MaskedLoad(part(v), d, y + v * kLanes)
                            : hn::Zero(d);
    }
    HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
      const VecOf<T> element = hn::Set(d, x[r * args.size + i]);
      HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Add()(sums[r][v], hn::Sub(element, of[v]), args.power);
      }
    }
  }
  HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
    T* to = args.sums + (row + r) * args.columns + column;
    HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) {
      if (whole) {
        hn::StoreU(sums[r][v], d, to + v * kLanes);
      } else if (has_part(v)) {
        hn::BlendedStore(sums[r][v], part(v), d, to + v * kLanes);
      }
    }
  }
}

template <class Add, typename T>
void Tiles(const DistanceArgs<T>& args) {
  constexpr int64_t kColumns = kVectors * HWY_LANES(T);
  for (int64_t column = args.first_column; column < args.end_column; column += kColumns) {
    const int64_t live = std::min(kColumns, args.end_column - column);
    int64_t row = args.first_row;
    for (; row + kRows <= args.end_row; row += kRows) Tile<Add, kRows>(args, row, column, live);
    for (; row < args.end_row; ++row) Tile<Add, 1>(args, row, column, live);
  }
}

template <typename T>
void Distances(const DistanceArgs<T>& args) {
  if (args.power == 1) return Tiles<AddMagnitude>(args);
  if (args.power == 2) return Tiles<AddSquare>(args);
  Tiles<AddPower>(args);
}

}  // namespace

constexpr DistanceKernels kDistanceKernels = {Distances<float>, Distances<double>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const DistanceKernels& DistanceKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kDistanceKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
