#include "runtime/device/cpu/distances.h"

#include <algorithm>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/distances.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);
constexpr int kRows = 4, kVectors = 2;

struct AddSquare {
  HWY_INLINE VF operator()(VF sum, VF difference) const {
    return hn::MulAdd(difference, difference, sum);
  }
};
struct AddAbsolute {
  HWY_INLINE VF operator()(VF sum, VF difference) const {
    return hn::Add(sum, hn::Abs(difference));
  }
};

// `kCount` rows from `row` on, `live` columns of a tile from `column` on.
template <class Add, int kCount>
HWY_INLINE void Tile(const DistanceArgs& args, int64_t row, int64_t column, int64_t live) {
  const F32 d;
  VF sums[kCount][kVectors];
  HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT x = args.x + row * args.size;
  const float* HWY_RESTRICT y = args.y + column;
  const bool whole = live >= kVectors * kLanes;
  for (int64_t i = 0; i < args.size; ++i, y += args.columns) {
    VF of[kVectors];
    HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) {
      const int64_t left = live - v * kLanes;
      of[v] = whole || left >= kLanes ? hn::LoadU(d, y + v * kLanes)
              : left > 0              ? LoadPart(d, y + v * kLanes, left)
                                      : hn::Zero(d);
    }
    HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
      const VF element = hn::Set(d, x[r * args.size + i]);
      HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Add()(sums[r][v], hn::Sub(element, of[v]));
      }
    }
  }
  HWY_UNROLL(4) for (int r = 0; r < kCount; ++r) {
    float* to = args.sums + (row + r) * args.columns + column;
    HWY_UNROLL(2) for (int v = 0; v < kVectors; ++v) {
      const int64_t left = live - v * kLanes;
      if (left >= kLanes) {
        hn::StoreU(sums[r][v], d, to + v * kLanes);
      } else if (left > 0) {
        StorePart(sums[r][v], d, to + v * kLanes, left);
      }
    }
  }
}

template <class Add>
void Distances(const DistanceArgs& args) {
  for (int64_t column = args.first_column; column < args.end_column; column += kVectors * kLanes) {
    const int64_t live = std::min(kVectors * kLanes, args.end_column - column);
    int64_t row = args.first_row;
    for (; row + kRows <= args.end_row; row += kRows) Tile<Add, kRows>(args, row, column, live);
    for (; row < args.end_row; ++row) Tile<Add, 1>(args, row, column, live);
  }
}

}  // namespace

constexpr DistanceKernels kDistanceKernels = {Distances<AddSquare>, Distances<AddAbsolute>};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const DistanceKernels& DistanceKernelsFor(Isa isa) {
  return REPRISE_CHOOSE_TARGET(isa, kDistanceKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
