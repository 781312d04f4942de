#include "runtime/device/collective.h"

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

// Copies elements [begin, end) of a matrix of `width` columns to the columns of a wider one.
void CopyColumns(const float* from, int64_t begin, int64_t end, int64_t width, float* to,
                 int64_t stride) {
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / width, column = at % width;
    const int64_t count = std::min(width - column, end - at);
    std::memcpy(to + row * stride + column, from + (at - begin),
                static_cast<size_t>(count) * sizeof(float));
    at += count;
  }
}

}  // namespace

void Collective::AllReduce(const float* mine, float* sum, int64_t count) {
  const auto most = static_cast<int64_t>(most_bytes() / sizeof(float));
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t some = std::min(most, count - begin);
    size_t bytes[kMostRanks];
    std::fill_n(bytes, ranks(), static_cast<size_t>(some) * sizeof(float));
    const std::byte* theirs[kMostRanks];
    if (!Exchange(reinterpret_cast<const std::byte*>(mine + begin), bytes, theirs)) return;
    float* const to = sum + begin;
    const auto* first = reinterpret_cast<const float*>(theirs[0]);
    const auto* second = reinterpret_cast<const float*>(theirs[1]);
    for (int64_t i = 0; i < some; ++i) to[i] = first[i] + second[i];
    for (int rank = 2; rank < ranks(); ++rank) {
      const auto* next = reinterpret_cast<const float*>(theirs[rank]);
      for (int64_t i = 0; i < some; ++i) to[i] += next[i];
    }
  }
}

void Collective::Broadcast(float* numbers, int64_t count, int root) {
  const auto most = static_cast<int64_t>(most_bytes() / sizeof(float));
  for (int64_t begin = 0; begin < count; begin += most) {
    const size_t some = static_cast<size_t>(std::min(most, count - begin)) * sizeof(float);
    size_t bytes[kMostRanks] = {0};
    bytes[root] = some;
    const std::byte* theirs[kMostRanks];
    if (!Exchange(reinterpret_cast<const std::byte*>(numbers + begin), bytes, theirs)) return;
    if (rank() != root) std::memcpy(numbers + begin, theirs[root], some);
  }
}

void Collective::GatherColumns(const float* mine, float* all, int64_t rows,
                               absl::Span<const int64_t> widths) {
  const auto most = static_cast<int64_t>(most_bytes() / sizeof(float));
  int64_t total = 0, widest = 0;
  for (const int64_t width : widths) {
    total += width;
    widest = std::max(widest, width);
  }
  for (int64_t begin = 0; begin < rows * widest; begin += most) {
    size_t bytes[kMostRanks];
    const auto end_of = [&](int rank) {
      return std::clamp(rows * widths[rank], begin, begin + most);
    };
    for (int rank = 0; rank < ranks(); ++rank) {
      bytes[rank] = static_cast<size_t>(end_of(rank) - begin) * sizeof(float);
    }
    const std::byte* theirs[kMostRanks];
    if (!Exchange(reinterpret_cast<const std::byte*>(mine + begin), bytes, theirs)) return;
    int64_t column = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
      CopyColumns(reinterpret_cast<const float*>(theirs[rank]), begin, end_of(rank), widths[rank],
                  all + column, total);
      column += widths[rank];
    }
  }
}

}  // namespace reprise
