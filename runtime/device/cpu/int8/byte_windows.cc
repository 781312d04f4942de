#include "runtime/device/cpu/int8/byte_windows.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/simd/copy_bytes.h"
#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/byte_windows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// `count` bytes, many as a rule.
HWY_INLINE void CopyVectors(const uint8_t* from, int64_t count, uint8_t* to) {
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<uint8_t, 32> d;  // a store of more takes as long as two
  constexpr int64_t kBytes = hn::MaxLanes(hn::CappedTag<uint8_t, 32>());
  if (count >= kBytes) {
    int64_t i = 0;
    for (; i + kBytes <= count; i += kBytes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    if (i < count) hn::StoreU(hn::LoadU(d, from + count - kBytes), d, to + count - kBytes);
    return;
  }
#endif
  CopyBytes(from, count, to);
}

inline void Fill(uint8_t value, int64_t count, uint8_t* to) {
  if (count > 0) std::memset(to, value, static_cast<size_t>(count));
}

// Copies a row of taps of one window: `length` bytes of each tap; neighbouring positions are `step`
// bytes apart in `from`, the row of the plane. If `from` is null, all taps lie in the padding.
inline uint8_t* SeeTaps(const PlaneAxis& columns, int64_t window, const uint8_t* from, int64_t step,
                        int64_t length, uint8_t zero, uint8_t* to) {
  const int64_t taps = columns.kernel;
  if (from == nullptr) {
    Fill(zero, taps * length, to);
    return to + taps * length;
  }
  const int64_t first = columns.At(window, 0);
  if (columns.dilation == 1 && step == length) {
    const int64_t begin = std::clamp<int64_t>(-first, 0, taps);
    const int64_t end = std::clamp<int64_t>(columns.in - first, begin, taps);
    Fill(zero, begin * length, to);
    CopyVectors(from + (first + begin) * step, (end - begin) * length, to + begin * length);
    Fill(zero, (taps - end) * length, to + end * length);
    return to + taps * length;
  }
  for (int64_t tap = 0; tap < taps; ++tap, to += length) {
    const int64_t at = first + tap * columns.dilation;
    if (at < 0 || at >= columns.in) {
      Fill(zero, length, to);
    } else {
      CopyVectors(from + at * step, length, to);
    }
  }
  return to;
}

// Returns the same of rows that are null where a tap is in the padding.
const uint8_t* RowOfTap(const ByteWindows& p, int64_t window, int64_t tap, const uint8_t* plane,
                        int64_t step) {
  const int64_t y = p.rows.At(window, tap);
  return y < 0 || y >= p.rows.in ? nullptr : plane + y * p.columns.in * step;
}

// Copies a window of plane `x`, at (row, column); returns the end of the copied bytes.
uint8_t* SeeWindow(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t row,
                   int64_t column, uint8_t zero, uint8_t* to) {
  const int64_t all = p.groups * p.channels;
  if (p.x_last) {
    for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
      to = SeeTaps(p.columns, column, RowOfTap(p, row, tap, x + group * p.channels, all), all,
                   p.channels, zero, to);
    }
    return to;
  }
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const uint8_t* const plane = x + (group * p.channels + channel) * p.in_plane();
    for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
      to = SeeTaps(p.columns, column, RowOfTap(p, row, tap, plane, 1), 1, 1, zero, to);
    }
  }
  return to;
}

// Copies `count` windows that reach no padding at the sides of the plane, the first of
// which is at `pieces`: a Word of each; the next Word overwrites the bytes after its taps.
template <class Word>
void SeePieces(const ByteWindows& p, const uint8_t* const* pieces, int64_t number, int64_t count,
               uint8_t zero, uint8_t* seen) {
  const int64_t taps = p.columns.kernel, stride = p.columns.stride, row_bytes = p.row_bytes();
  for (int64_t at = 0; count > 0; --count, at += stride, seen += row_bytes) {
    uint8_t* to = seen;
    for (int64_t i = 0; i < number; ++i, to += taps) {
      Word word;
      std::memcpy(&word, pieces[i] + at, sizeof(word));
      std::memcpy(to, &word, sizeof(word));
    }
    std::memset(to, zero, 4);
  }
}

// Neighbouring windows of row `row` from `column` on. A Word is not shorter than the taps.
template <class Word>
void SeeStretch(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t row, int64_t column,
                int64_t count, uint8_t zero, uint8_t* seen) {
  const int64_t row_bytes = p.row_bytes();
  // Whether the words of a window lie within the plane.
  const auto inside = [&](int64_t window) {
    const int64_t first = p.columns.At(window, 0);
    return first >= 0 && first + static_cast<int64_t>(sizeof(Word)) <= p.columns.in;
  };
  int64_t begin = column, end = column + count;
  const auto see_window = [&](int64_t window) {
    uint8_t* const to = seen + (window - column) * row_bytes;
    std::memset(SeeWindow(p, x, group, row, window, zero, to), zero, 4);
  };
  while (begin < end && !inside(begin)) see_window(begin++);
  while (end > begin && !inside(end - 1)) see_window(--end);
  if (begin == end) return;
  const uint8_t* pieces[ByteWindows::kMostPieces];
  int64_t number = 0;
  bool padded = false;
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const uint8_t* const plane = x + (group * p.channels + channel) * p.in_plane();
    for (int64_t tap = 0; tap < p.rows.kernel; ++tap) {
      const uint8_t* const from = RowOfTap(p, row, tap, plane, 1);
      padded |= from == nullptr;
      pieces[number++] = from == nullptr ? nullptr : from + p.columns.At(begin, 0);
    }
  }
  if (padded) {
    for (; begin < end; ++begin) see_window(begin);
    return;
  }
  SeePieces<Word>(p, pieces, number, end - begin, zero, seen + (begin - column) * row_bytes);
}

// Copies the windows by words of the length that suits the taps.
void SeeByWords(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t row, int64_t column,
                int64_t count, uint8_t zero, uint8_t* seen) {
  struct Sixteen {
    uint64_t halves[2];
  };
  const int64_t taps = p.columns.kernel;
  const auto see = [&](auto word) {
    SeeStretch<decltype(word)>(p, x, group, row, column, count, zero, seen);
  };
  if (taps > 8) return see(Sixteen());
  if (taps > 4) return see(uint64_t{});
  if (taps > 1) return see(uint32_t{});
  return see(uint8_t{});
}

void SeeRows(const ByteWindows& p, const uint8_t* x, int64_t group, int64_t first, int64_t count,
             uint8_t zero, uint8_t* seen) {
  const int64_t element_bytes = p.groups * p.channels * p.in_plane();
  // Stretches of windows in one row.
  for (int64_t windows; count > 0; first += windows, count -= windows) {
    const int64_t row = first / p.columns.out % p.rows.out, column = first % p.columns.out;
    const uint8_t* const element = x + first / p.out_plane() * element_bytes;
    windows = std::min(count, p.columns.out - column);
    if (p.by_words()) {
      SeeByWords(p, element, group, row, column, windows, zero, seen);
      seen += windows * p.row_bytes();
      continue;
    }
    for (int64_t i = 0; i < windows; ++i, seen += p.row_bytes()) {
      std::memset(SeeWindow(p, element, group, row, column + i, zero, seen), zero, 4);
    }
  }
}

}  // namespace

constexpr SeeByteWindows kSeeByteWindows = SeeRows;

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

SeeByteWindows SeeByteWindowsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kSeeByteWindows); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
