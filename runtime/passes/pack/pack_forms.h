// The meaning of the dims of a value, found by looking at one graph at two sizes of its axes.
#pragma once

#include <vector>

#include "runtime/graph/shape.h"

namespace reprise::pack {

// The sizes that a model was specialised at.
struct Sizes {
  int64_t rows;
  int64_t length;
};

struct DimKind {
  enum Kind { kSize, kRows, kLength, kTokens, kOther };
  Kind kind = kSize;
  int64_t size = 0;  // that in the first graph

  bool is_one() const { return kind == kSize && size == 1; }
};

// Returns the dims of a value that has shape `a` at `at_a` and `b` at `at_b`; kOther for all when
// the ranks differ.
std::vector<DimKind> DimKinds(const Shape& a, const Sizes& at_a, const Shape& b, const Sizes& at_b);

// How a value of the padded graph is laid out in the packed one.
struct Form {
  enum Kind {
    kNone,      // not at all
    kFixed,     // the same for every request; may have dims of the length (a table by position)
    kTokens,    // [rows, length, rest...] (or rows * length in one) -> [tokens, rest...]
    kSegments,  // [rows, rest...] -> [segments, rest...]
    kPairs,     // [rows, length, length], perhaps with heads or 1 after the rows: only as a mask of
                // attention
  };
  Kind kind = kNone;
  size_t rest = 0;  // dims that stay
  size_t rows = 0;  // set for kTokens and kSegments: where the rows are, from the right, 1 the last
  bool merged = false;  // rows and length are one dim
};
Form FormOf(const std::vector<DimKind>& dims);

// Returns the sizes of the last `rest` dims.
Shape Tail(const std::vector<DimKind>& dims, size_t rest);

// Counted from the right, -1 the last.
inline int64_t FromRight(int64_t axis, int64_t rank) { return axis < 0 ? axis : axis - rank; }

// Returns whether the axis, counted from the right, is one of the last `rest` dims.
inline bool IsInside(int64_t from_right, size_t rest) {
  return -from_right >= 1 && -from_right <= static_cast<int64_t>(rest);
}

}  // namespace reprise::pack
