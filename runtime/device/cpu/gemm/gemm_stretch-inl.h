// How products walk over packed weights: a stretch of a panel at a time, all tiles of rows over it.
// Included inside a kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_GEMM_STRETCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_STRETCH_INL_H_
#undef REPRISE_CPU_GEMM_STRETCH_INL_H_
#else
#define REPRISE_CPU_GEMM_STRETCH_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The most rows of A at a time where partial sums wait for the next stretch of k.
constexpr int64_t kMaxSplitRows = 16 * kTileRows;
// Weights come from memory: a model has many more of them than a core has cache. A stretch of a
// panel is short enough to stay in a cache while all row tiles pass over it. While they are
// computed, the stretch after it is prefetched into the L2 cache, a little at each step, so
// that a core computes and fetches at the same time. With fewer tiles than kFewTiles nothing
// hides the fetching; then every line is prefetched again, kNearRows ahead of its use, into the
// L1 cache. A lone tile needs no stretches. It prefetches each line kFarBytes ahead, into the
// L1 cache where that has the room: 55 to 67 GB/s of a Zen 5 with 2 to 8 rows. Without the room
// it prefetches into the L2 cache, if it has more than kStreamedRows rows. With fewer rows a
// core waits for the memory, and nothing reads one stream faster than long vectors alone, which
// the hardware prefetchers follow: 30 of 30 GB/s of a Zen 4, but 22 where each line is
// prefetched.
constexpr int64_t kFewTiles = 3;
constexpr int64_t kNearRows = 24;
constexpr int64_t kFarBytes = 16384;
constexpr int kStreamedRows = HWY_TARGET == HWY_AVX3 ? 6 : 0;
constexpr int64_t kRowBytes = kPanel * static_cast<int64_t>(sizeof(float));

HWY_INLINE bool RoomyCache() {
  static const bool roomy = FirstLevelCacheBytes() >= kRoomyCacheBytes;
  return roomy;
}

HWY_INLINE bool LargeSecondCache() {
  constexpr int64_t kLargeBytes = 1024 * 1024;
  static const bool large = SecondLevelCacheBytes() >= kLargeBytes;
  return large;
}

// A stretch that leaves room for the rows of A in a roomy L1 cache.
constexpr int64_t kCloseRows = 36 * 1024 / kRowBytes;

// Returns whether two tiles are far from full.
constexpr bool AreTwoLowTiles(int64_t rows) { return 4 * rows < 7 * kTileRows; }

// The longest stretch of all, which stays in the L2 cache.
constexpr int64_t kLongestStretchBytes = 144 * 1024;

// Returns the longest stretch of a panel for `rows` rows of A, which are more than one tile.
// Keeping sums for the next stretch costs more than reading this one from the L2 cache for every
// tile: 1 to 5 % of a product on a Zen 5, with 14 to 512 rows, and the same where bytes are
// multiplied. Only two low tiles outrun that cache: 12 rows are multiplied at 220 GF/s from there,
// at 254 where a stretch stays in the L1 cache. Where the L1 cache cannot hold a stretch with the
// rows of A, keeping sums gains nothing: the stretches there date from before the L2 cache was
// used, and shorter ones have not been measured.
HWY_INLINE int64_t StretchRows(int64_t rows) {
  constexpr int64_t kLowTilesBytes = 24 * 1024;
  constexpr int64_t kCrampedBytes = 72 * 1024;
  if (!RoomyCache()) return kCrampedBytes / kRowBytes;
  if (AreTwoLowTiles(rows)) return kLowTilesBytes / kRowBytes;
  return LargeSecondCache() ? kLongestStretchBytes / kRowBytes : kCloseRows;
}

// Returns the rows of a stretch where `k` is split into the fewest of at most `longest`. All have
// about the same length, since each prefetches as many rows of the next one as it has itself.
constexpr int64_t EvenStretch(int64_t k, int64_t longest) {
  constexpr int64_t kStep = 8;  // a multiple of the rows that inner loops take at a time
  if (k <= longest) return std::max<int64_t>(k, 1);
  const int64_t stretches = (k + longest - 1) / longest;
  const int64_t rows = (k + stretches - 1) / stretches;
  return std::min(longest, (rows + kStep - 1) / kStep * kStep);
}

constexpr int64_t kLine = 64;  // bytes that a cache fetches at a time
// Returns where in row `row` of rows of `row_bytes` that lie side by side the first line begins,
// counted from where row 0 begins.
constexpr int64_t FirstLine(int row, int64_t row_bytes) {
  return (row * row_bytes + kLine - 1) / kLine * kLine - row * row_bytes;
}

struct Ahead {
  const char* next;  // where to go on
  int64_t step;      // bytes to advance at each row of the current panel
};

constexpr int64_t TilesOf(int64_t rows, int64_t tile_rows = kTileRows) {
  return (rows + tile_rows - 1) / tile_rows;
}

// Returns the rows of the next tile; the last ones are alike: one of a row or two waits for sums.
constexpr int64_t NextTileRows(int64_t remaining, int64_t tile_rows = kTileRows) {
  if (remaining <= tile_rows) return remaining;
  if (remaining <= 2 * tile_rows) return (remaining + 1) / 2;
  if (remaining < 3 * tile_rows) return (remaining + 2) / 3;
  return tile_rows;
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
