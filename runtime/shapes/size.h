// Size: a number that may know where it comes from.
//
// A size has a hint, the number that it is in the reading at hand, and, where it follows from sizes
// of axes, a term (term.h) that says how. Without a term it is a constant, and costs what an int64
// costs. Arithmetic keeps terms. A comparison decides by the hints; where a term leaves it open,
// the table of the term records the predicate, so that the decision is known to hold for all sizes
// of one region (region.h).
//
//   SizeTable table;
//   const Size s = table.Symbol("sequence", /*hint=*/7);
//   const Size out = (s + 1) / 2;   // hint 4, floor((sequence + 1) / 2)
//   if (out == 1) ...               // false, and the table has the guard floor(...) >= 2
//
// Threads: those of one table belong to one thread at a time; constants to any.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/graph/shape.h"

namespace reprise {

class Term;

class Size {
 public:
  constexpr Size() = default;
  template <std::integral Number>
  constexpr Size(Number number) : hint_(static_cast<int64_t>(number)) {}  // NOLINT: a number is one
  constexpr Size(int64_t hint, const Term* term) : hint_(hint), term_(term) {}

  constexpr int64_t hint() const { return hint_; }
  constexpr const Term* term() const { return term_; }  // nullptr: a constant
  constexpr bool is_constant() const { return term_ == nullptr; }
  // Returns whether both are equal for all sizes of the axes, by normal forms. Records nothing.
  constexpr bool Same(Size other) const { return hint_ == other.hint_ && term_ == other.term_; }
  // Returns the number itself. Records that the size is its hint where it is no constant.
  int64_t Pinned() const { return is_constant() ? hint_ : Pin(); }

  friend Size operator+(Size a, Size b) {
    return Constants(a, b) ? Size(a.hint_ + b.hint_) : Sum(a, b);
  }
  friend Size operator-(Size a, Size b) {
    return Constants(a, b) ? Size(a.hint_ - b.hint_) : Sum(a, Product(b, -1));
  }
  friend Size operator-(Size a) { return Size() - a; }
  friend Size operator*(Size a, Size b) {
    return Constants(a, b) ? Size(a.hint_ * b.hint_) : Product(a, b);
  }
  // Rounds toward zero, as for int64. The divisor is not 0.
  friend Size operator/(Size a, Size b) {
    return Constants(a, b) ? Size(a.hint_ / b.hint_) : Truncated(a, b);
  }
  friend Size operator%(Size a, Size b) {
    return Constants(a, b) ? Size(a.hint_ % b.hint_) : a - b * Truncated(a, b);
  }
  Size& operator+=(Size other) { return *this = *this + other; }
  Size& operator-=(Size other) { return *this = *this - other; }
  Size& operator*=(Size other) { return *this = *this * other; }
  Size& operator/=(Size other) { return *this = *this / other; }

  friend bool operator==(Size a, Size b) {
    return Constants(a, b) ? a.hint_ == b.hint_ : Equal(a, b);
  }
  friend bool operator<=(Size a, Size b) {
    return Constants(a, b) ? a.hint_ <= b.hint_ : NotAbove(a, b);
  }
  friend bool operator>=(Size a, Size b) { return b <= a; }
  friend bool operator<(Size a, Size b) { return !(b <= a); }
  friend bool operator>(Size a, Size b) { return !(a <= b); }

  // Messages show hints.
  operator absl::AlphaNum() const { return absl::AlphaNum(hint_); }  // NOLINT: for absl::StrCat

 private:
  static bool Constants(Size a, Size b) { return a.term_ == nullptr && b.term_ == nullptr; }
  static Size Sum(Size a, Size b);
  static Size Product(Size a, Size b);
  static Size Truncated(Size a, Size b);
  static bool Equal(Size a, Size b);
  static bool NotAbove(Size a, Size b);
  int64_t Pin() const;

  int64_t hint_ = 0;
  const Term* term_ = nullptr;
};

// Rounds down. The divisor is above 0.
int64_t FloorDivide(int64_t a, int64_t b);
Size FloorDivide(Size a, Size b);
// Chooses without recording which one it is where a term can say so.
Size Least(Size a, Size b);
Size Largest(Size a, Size b);
inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Largest(int64_t a, int64_t b) { return a > b ? a : b; }
// Sets `result` to the sum or the product, and returns whether the hint overflows.
bool AddOverflows(Size a, Size b, Size* result);
bool MultiplyOverflows(Size a, Size b, Size* result);

// The sizes of a tensor's dims, outermost first.
using SizeList = absl::InlinedVector<Size, 6>;

SizeList SizesOf(absl::Span<const int64_t> numbers);
Shape HintsOf(absl::Span<const Size> sizes);
// Returns every number, pinned (Size::Pinned).
std::vector<int64_t> PinnedAll(absl::Span<const Size> sizes);

// Compute as the functions of graph/shape.h do, for sizes; the first counts the elements of the
// sizes at hand.
absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const Size> shape);
Size NumElements(absl::Span<const Size> shape);
std::string ShapeToString(absl::Span<const Size> shape);

// Returns the numpy broadcast of two shapes; INVALID_ARGUMENT naming both when they do not agree.
absl::StatusOr<Shape> BroadcastShapes(absl::Span<const int64_t> a, absl::Span<const int64_t> b);
absl::StatusOr<SizeList> BroadcastShapes(absl::Span<const Size> a, absl::Span<const Size> b);

// "floor((sequence + 1) / 2)".
std::string SizeText(Size size);
// "[batch, 2*sequence]".
std::string SizesText(absl::Span<const Size> sizes);

}  // namespace reprise
