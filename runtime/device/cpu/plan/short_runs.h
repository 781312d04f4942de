// Walks whose runs are shorter than a few vectors, such as a Sub of [3] from [224, 224, 3]:
// operands that broadcast are written out a chunk at a time, so that kernels go over long runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/device/cpu/plan/strided.h"

namespace reprise::cpu {

// The longest run that is short, in elements.
inline constexpr int64_t kShortRun = 32;

// Rows are the runs of a walk, `width` elements each.
template <size_t N>
struct ShortRuns {
  // How the rows of an operand follow each other.
  enum class Rows {
    kWhole,  // one after the other
    kSame,   // the same one again and again
    kSplat,  // each row repeats one value
  };

  int64_t width = 0;
  Walk<N> rows;  // the walk without its innermost dim; its elements are rows
  std::array<Rows, N> operands;
};

// Returns nullopt where the walk's own runs serve better.
template <size_t N>
std::optional<ShortRuns<N>> MakeShortRuns(const Walk<N>& walk) {
  constexpr int64_t kFewRows = 8;
  if (walk.dims < 2 || walk.elements == 0) return std::nullopt;
  ShortRuns<N> short_runs;
  short_runs.width = walk.sizes[walk.dims - 1];
  short_runs.rows = walk;
  short_runs.rows.elements /= short_runs.width;
  --short_runs.rows.dims;
  const size_t last = short_runs.rows.dims - 1;
  if (short_runs.width > kShortRun || walk.sizes[last] < kFewRows) return std::nullopt;
  for (size_t n = 0; n < N; ++n) {
    using Rows = typename ShortRuns<N>::Rows;
    const int64_t inner = walk.inner_stride(n), outer = walk.strides[n][last];
    if (inner == 1 && outer == short_runs.width) {
      short_runs.operands[n] = Rows::kWhole;
    } else if (inner == 1 && outer == 0) {
      short_runs.operands[n] = Rows::kSame;
    } else if (inner == 0) {
      short_runs.operands[n] = Rows::kSplat;
    } else {
      return std::nullopt;
    }
  }
  return short_runs;
}

// A chunk of an operand's rows, written out.
class WrittenRows {
 public:
  static constexpr int64_t kElements = 512;

  // `count` times the row of `bytes` at `row`.
  const std::byte* Same(const std::byte* row, int64_t bytes, int64_t count) {
    if (row != row_) written_ = 0;
    row_ = row;
    if (written_ == 0) {
      std::copy_n(row, bytes, buffer_);
      written_ = 1;
    }
    while (written_ < count) {
      const int64_t more = std::min(written_, count - written_);
      std::copy_n(buffer_, more * bytes, buffer_ + written_ * bytes);
      written_ += more;
    }
    return buffer_;
  }

  // `count` rows of `width` times each of the values of `size` bytes at `values`, which are
  // `stride` apart.
  const std::byte* Splat(const std::byte* values, size_t size, int64_t stride, int64_t width,
                         int64_t count) {
    switch (size) {
      case 1:
        return SplatOf<uint8_t>(values, stride, width, count);
      case 2:
        return SplatOf<uint16_t>(values, stride, width, count);
      case 4:
        return SplatOf<uint32_t>(values, stride, width, count);
      default:
        return SplatOf<uint64_t>(values, stride, width, count);
    }
  }

 private:
  template <class T>
  const std::byte* SplatOf(const void* values, int64_t stride, int64_t width, int64_t count) {
    const T* const from = static_cast<const T*>(values);
    T* const to = reinterpret_cast<T*>(buffer_);
    if (width <= 4) {
      SplatBy<4>(from, stride, width, count, to);
    } else if (width <= 8) {
      SplatBy<8>(from, stride, width, count, to);
    } else if (width <= 16) {
      SplatBy<16>(from, stride, width, count, to);
    } else {
      SplatBy<kShortRun>(from, stride, width, count, to);
    }
    return buffer_;
  }

  // Writes the rows. Each row overwrites the elements that the one before wrote beyond its width.
  template <int kWrites, class T>
  static void SplatBy(const T* values, int64_t stride, int64_t width, int64_t count, T* to) {
    for (int64_t row = 0; row < count; ++row) {
      std::fill_n(to + row * width, kWrites, values[row * stride]);
    }
  }

  alignas(64) std::byte buffer_[(kElements + kShortRun) * sizeof(uint64_t)];
  const std::byte* row_ = nullptr;  // the source of the `written_` rows
  int64_t written_ = 0;
};

// run(position, chunk, count) for chunks of part `part` of the first `live` elements of the output:
// chunk[n] points at `count` elements of operand n, of sizes[n] bytes, that follow each other. An
// operand of size 0 is not there.
template <size_t N, class F>
void ForEachChunk(const ShortRuns<N>& runs, const std::array<const void*, N>& operands,
                  const std::array<size_t, N>& sizes, int64_t live, int part, int parts, F run) {
  using Rows = typename ShortRuns<N>::Rows;
  constexpr int64_t kGrainRows = 16;
  const int64_t width = runs.width, rows_of_chunk = WrittenRows::kElements / width;
  const size_t last = runs.rows.dims - 1;
  WrittenRows written[N];
  const auto rows_of = [&](size_t n, int64_t offset, int64_t count) {
    const auto size = static_cast<int64_t>(sizes[n]);
    const auto* const first = static_cast<const std::byte*>(operands[n]) + offset * size;
    if (runs.operands[n] == Rows::kWhole) return first;
    if (runs.operands[n] == Rows::kSame) return written[n].Same(first, width * size, count);
    return written[n].Splat(first, sizes[n], runs.rows.strides[n][last], width, count);
  };
  ForEachRunOf(runs.rows, RangeOfPart(live / width, kGrainRows, part, parts),
               [&](int64_t position, const std::array<int64_t, N>& offsets, int64_t rows) {
                 for (int64_t row = 0; row < rows; row += rows_of_chunk) {
                   const int64_t count = std::min(rows_of_chunk, rows - row);
                   std::array<const void*, N> chunk = {};
                   for (size_t n = 0; n < N; ++n) {
                     if (sizes[n] == 0) continue;
                     chunk[n] = rows_of(n, offsets[n] + row * runs.rows.strides[n][last], count);
                   }
                   run((position + row) * width, chunk, count * width);
                 }
               });
}

}  // namespace reprise::cpu
