#include "runtime/device/cpu/conv/im2col_rows.h"

#include <algorithm>
#include <utility>

#include "runtime/base/aligned_buffer.h"

namespace reprise::cpu {
namespace {

using Kind = WindowRows::Kind;

constexpr int64_t kLineFloats = 16;  // the floats of a cache line

void CopyRows(const WindowRows& p, const float* x, const WindowRows::Range& windows, float* rows) {
  const Strips& s = p.strips;
  for (int64_t i = 0; i < windows.count; ++i, rows += p.row_floats) {
    const int64_t window = windows.first + i;
    const int64_t row = window / s.out.columns * s.stride.rows - s.pad.rows;
    const int64_t column = window % s.out.columns * s.stride.columns - s.pad.columns;
    float* to = rows;
    for (int64_t tap_row = 0; tap_row < s.kernel.rows; ++tap_row) {
      const int64_t at_row = row + tap_row * s.dilation.rows;
      const bool row_inside = at_row >= 0 && at_row < s.in.rows;
      const float* const from = row_inside ? x + at_row * s.in.columns * p.line : nullptr;
      if (row_inside && s.dilation.columns == 1 && p.line == p.channels && column >= 0 &&
          column + s.kernel.columns <= s.in.columns) {
        to = std::copy_n(from + column * p.line, s.kernel.columns * p.channels, to);
        continue;
      }
      for (int64_t tap = 0; tap < s.kernel.columns; ++tap) {
        const int64_t at = column + tap * s.dilation.columns;
        const bool inside = row_inside && at >= 0 && at < s.in.columns;
        to = inside ? std::copy_n(from + at * p.line, p.channels, to)
                    : std::fill_n(to, p.channels, 0.0f);
      }
    }
  }
}

// Returns the elements of a row of the planes that windows see, with zeros for those outside of the
// row.
const float* SeenRun(const WindowRows& p, const float* x, const WindowRows::Range& windows,
                     float* scratch) {
  const Strips& s = p.strips;
  const int64_t channels = p.channels;
  const int64_t first = windows.first * s.stride.columns - s.pad.columns;
  const int64_t end = first + (windows.count - 1) * s.stride.columns + s.kernel.columns;
  if (first >= 0 && end <= s.in.columns) return x + first * channels;
  const int64_t begin_inside = std::clamp<int64_t>(0, first, end);
  const int64_t end_inside = std::clamp(s.in.columns, begin_inside, end);
  float* to = std::fill_n(scratch, (begin_inside - first) * channels, 0.0f);
  to = std::copy_n(x + begin_inside * channels, (end_inside - begin_inside) * channels, to);
  std::fill_n(to, (end - end_inside) * channels, 0.0f);
  return scratch;
}

Kind KindOf(const Strips& s, int64_t groups) {
  const auto is = [](const Strips::Extent& extent, int64_t size) {
    return extent.rows == size && extent.columns == size;
  };
  if (is(s.kernel, 1) && is(s.stride, 1) && is(s.pad, 0) && s.out.rows == s.in.rows &&
      s.out.columns == s.in.columns) {
    return Kind::kElements;
  }
  return s.IsRow() && s.dilation.columns == 1 && groups == 1 ? Kind::kRuns : Kind::kCopied;
}

}  // namespace

const float* WindowRows::Of(const float* x, const Range& windows, float* scratch) const {
  switch (kind) {
    case Kind::kElements:
      return x + windows.first * line;
    case Kind::kRuns:
      return SeenRun(*this, x, windows, scratch);
    case Kind::kCopied:
      CopyRows(*this, x, windows, scratch);
      return scratch;
  }
  return nullptr;
}

WindowRows WindowRowsOf(Strips strips, int64_t groups, int64_t channels, int64_t block) {
  WindowRows rows = {.strips = std::move(strips), .channels = channels, .line = groups * channels};
  rows.kind = KindOf(rows.strips, groups);
  int64_t floats = 0;
  if (rows.kind == Kind::kElements) {
    rows.row_floats = rows.line;
  } else if (rows.kind == Kind::kRuns) {
    rows.row_floats = rows.strips.stride.columns * channels;
    floats = (block - 1) * rows.row_floats + rows.strips.kernel.columns * channels;
  } else {
    // An odd number of cache lines: rows that are written together do not share the cache's sets.
    rows.row_floats = static_cast<int64_t>(AlignUp(rows.depth(), kLineFloats)) | kLineFloats;
    floats = block * rows.row_floats;
  }
  rows.scratch_floats = static_cast<int64_t>(AlignUp(floats, kLineFloats));
  return rows;
}

}  // namespace reprise::cpu
