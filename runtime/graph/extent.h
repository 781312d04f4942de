// Extent: how many positions of a value belong to a request, by the request's size along an axis.
//
// Windows with strides make floor((size + offset) / stride) positions of `size`. Windows over these
// are of the same form again, since floor(floor(x / a) / b) is floor(x / (a b)): a whole stack of
// convolutions and pools is one offset and one stride.
//
//   const Extent halved = Extent().Through(/*added=*/1, /*stride=*/2);   // kernel 3, pads 1,
//   stride 2 halved.At(9) == 5
//
// Threads: pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace reprise {

struct Extent {
  int64_t offset = 0;
  int64_t stride = 1;  // at least 1

  int64_t At(int64_t size) const {
    const int64_t all = size + offset;
    return all >= 0 ? all / stride : -((stride - 1 - all) / stride);
  }
  // Returns the extent floor((this + added) / by).
  Extent Through(int64_t added, int64_t by) const {
    return {.offset = offset + stride * added, .stride = stride * by};
  }
  // Returns one form for all extents that are equal at every multiple of `step`: a stride that
  // divides the step leaves no rest.
  Extent AtMultiplesOf(int64_t step) const {
    return step % stride == 0 ? Extent{.offset = At(0) * stride, .stride = stride} : *this;
  }
  // Returns the extent of the copies where each position is copied `by` times, at multiples of
  // `step`. nullopt: there is none.
  std::optional<Extent> Times(int64_t by, int64_t step) const {
    if (by < 1 || step % stride != 0 || stride % by != 0) return std::nullopt;
    return Extent{.offset = At(0) * stride, .stride = stride / by}.AtMultiplesOf(step);
  }
  // Returns whether every position of the axis is one of these.
  bool is_whole() const { return offset == 0 && stride == 1; }

  friend bool operator==(const Extent&, const Extent&) = default;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

// Returns the smallest multiple of `step` that is no less than `size`.
inline int64_t RoundUpTo(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

// Returns "floor((sequence + 1) / 2)".
inline std::string ExtentText(const Extent& extent, const std::string& axis) {
  if (extent.is_whole()) return axis;
  const char* const sign = extent.offset < 0 ? " - " : " + ";
  const int64_t offset = extent.offset < 0 ? -extent.offset : extent.offset;
  const std::string sum = offset == 0 ? axis : absl::StrCat("(", axis, sign, offset, ")");
  return extent.stride == 1 ? sum : absl::StrCat("floor(", sum, " / ", extent.stride, ")");
}

}  // namespace reprise
