#include "runtime/shapes/size.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

SizeTable& TableOf(Size a, Size b) { return *(a.term() != nullptr ? a.term() : b.term())->table; }

}  // namespace

Size Size::Sum(Size a, Size b) {
  Polynomial sum = Polynomial::Of(a);
  sum.Add(Polynomial::Of(b), 1);
  return TableOf(a, b).Make(sum);
}

Size Size::Product(Size a, Size b) {
  if (Constants(a, b)) return a.hint_ * b.hint_;
  return TableOf(a, b).Make(Polynomial::Of(a) * Polynomial::Of(b));
}

Size Size::Truncated(Size a, Size b) {
  if (b < 0) return Truncated(-a, -b);
  return a >= 0 ? TableOf(a, b).Quotient(a, b) : -TableOf(a, b).Quotient(-a, b);
}

// Bounds first: a difference from the ends of int64, as slices have them, overflows.
bool Size::Equal(Size a, Size b) {
  if (a.term_ == b.term_) return a.hint_ == b.hint_;
  SizeTable& table = TableOf(a, b);
  if (a.hint_ != b.hint_) table.AddUnlike(a, b);
  const Interval of_a = table.Bounds(a), of_b = table.Bounds(b);
  if (of_a.high < of_b.low || of_b.high < of_a.low) return false;
  return table.IsZero(a - b).value();
}

bool Size::NotAbove(Size a, Size b) {
  if (a.term_ == b.term_) return a.hint_ <= b.hint_;
  SizeTable& table = TableOf(a, b);
  const Interval of_a = table.Bounds(a), of_b = table.Bounds(b);
  if (of_a.high <= of_b.low) return true;
  if (of_a.low > of_b.high) return false;
  return table.IsNotNegative(b - a).value();
}

int64_t Size::Pin() const {
  (void)term_->table->IsZero(*this - hint_);
  return hint_;
}

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

Size FloorDivide(Size a, Size b) {
  if (a.is_constant() && b.is_constant()) return FloorDivide(a.hint(), b.hint());
  return TableOf(a, b).Quotient(a, b);
}

Size Least(Size a, Size b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.hint(), b.hint());
  return TableOf(a, b).Extreme(TermKind::kLeast, a, b);
}

Size Largest(Size a, Size b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.hint(), b.hint());
  return TableOf(a, b).Extreme(TermKind::kLargest, a, b);
}

bool AddOverflows(Size a, Size b, Size* result) {
  int64_t sum;
  if (__builtin_add_overflow(a.hint(), b.hint(), &sum)) return true;
  *result = a + b;
  return false;
}

bool MultiplyOverflows(Size a, Size b, Size* result) {
  int64_t product;
  if (__builtin_mul_overflow(a.hint(), b.hint(), &product)) return true;
  *result = a * b;
  return false;
}

SizeList SizesOf(absl::Span<const int64_t> numbers) {
  return SizeList(numbers.begin(), numbers.end());
}

Shape HintsOf(absl::Span<const Size> sizes) {
  Shape hints;
  hints.reserve(sizes.size());
  for (const Size size : sizes) hints.push_back(size.hint());
  return hints;
}

std::vector<int64_t> PinnedAll(absl::Span<const Size> sizes) {
  std::vector<int64_t> numbers;
  numbers.reserve(sizes.size());
  for (const Size size : sizes) numbers.push_back(size.Pinned());
  return numbers;
}

absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const Size> shape) {
  for (const Size size : shape) {
    if (!size.is_constant() && size < 0) break;  // it is named below
  }
  // Limits are for the sizes at hand, and part of no region: what goes beyond them is refused
  // there.
  return CheckedNumElements(absl::MakeConstSpan(HintsOf(shape)));
}

Size NumElements(absl::Span<const Size> shape) {
  Size product = 1;
  for (const Size size : shape) product *= size;
  return product;
}

std::string ShapeToString(absl::Span<const Size> shape) { return ShapeToString(HintsOf(shape)); }

namespace {

// Asks no more than it must: next to a constant 1 nothing is asked of the other size.
template <typename List>
absl::StatusOr<List> Broadcast(absl::Span<const typename List::value_type> a,
                               absl::Span<const typename List::value_type> b) {
  const auto is_one = [](Size size) { return size.is_constant() && size.hint() == 1; };
  const size_t rank = std::max(a.size(), b.size());
  List result(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (i < rank - a.size() || i < rank - b.size()) {
      result[i] = i < rank - a.size() ? b[i - (rank - b.size())] : a[i - (rank - a.size())];
      continue;
    }
    const auto x = a[i - (rank - a.size())], y = b[i - (rank - b.size())];
    if (is_one(x)) {
      result[i] = y;
    } else if (is_one(y) || x == y) {
      result[i] = x;
    } else if (x == 1 || y == 1) {
      result[i] = x == 1 ? y : x;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("shapes ", ShapeToString(a), " and ",
                                                     ShapeToString(b), " do not broadcast"));
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<Shape> BroadcastShapes(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  return Broadcast<Shape>(a, b);
}

absl::StatusOr<SizeList> BroadcastShapes(absl::Span<const Size> a, absl::Span<const Size> b) {
  return Broadcast<SizeList>(a, b);
}

namespace {

std::string AtomText(const Term& atom);

std::string PartText(const TermPart& part, int64_t factor) {
  std::string text = factor == 1 ? "" : absl::StrCat(factor, "*");
  return absl::StrCat(text, absl::StrJoin(part.atoms, "*", [](std::string* out, const Term* atom) {
                        absl::StrAppend(out, AtomText(*atom));
                      }));
}

std::string AtomText(const Term& atom) {
  const auto operand = [&](size_t i) { return SizeText(atom.operands[i]); };
  switch (atom.kind) {
    case TermKind::kSymbol:
      return atom.table->symbols()[static_cast<size_t>(atom.number)];
    case TermKind::kIndex:
      return absl::StrCat("i", atom.number);
    case TermKind::kPolynomial:
      return absl::StrCat("(", SizeText(Size(atom.hint, &atom)), ")");
    case TermKind::kQuotient: {
      const auto bracketed = [&](size_t i) {
        const Term* term = atom.operands[i].term();
        const bool sum = term != nullptr && term->kind == TermKind::kPolynomial;
        return sum ? absl::StrCat("(", operand(i), ")") : operand(i);
      };
      return absl::StrCat("floor(", bracketed(0), " / ", bracketed(1), ")");
    }
    case TermKind::kLeast:
      return absl::StrCat("min(", operand(0), ", ", operand(1), ")");
    case TermKind::kLargest:
      return absl::StrCat("max(", operand(0), ", ", operand(1), ")");
    case TermKind::kChoice:
      return absl::StrCat("(", operand(0), " ? ", operand(1), " : ", operand(2), ")");
    case TermKind::kCall:
      return absl::StrCat(
          atom.function->key(), "(",
          absl::StrJoin(atom.operands, ", ",
                        [](std::string* out, Size size) { absl::StrAppend(out, SizeText(size)); }),
          ")");
  }
  return "?";
}

}  // namespace

std::string SizeText(Size size) {
  if (size.is_constant()) return absl::StrCat(size.hint());
  const Polynomial polynomial = Polynomial::Of(size);
  std::string text;
  for (const TermPart& part : polynomial.parts) {
    const bool negative = part.factor < 0 && part.factor != std::numeric_limits<int64_t>::min();
    absl::StrAppend(&text,
                    text.empty() ? (negative ? "-" : "")
                    : negative   ? " - "
                                 : " + ",
                    PartText(part, negative ? -part.factor : part.factor));
  }
  const int64_t constant = polynomial.constant;
  if (constant > 0) absl::StrAppend(&text, " + ", constant);
  if (constant < 0) absl::StrAppend(&text, " - ", absl::StrCat(constant).substr(1));
  return text;
}

std::string SizesText(absl::Span<const Size> sizes) {
  return absl::StrCat(
      "[",
      absl::StrJoin(sizes, ", ",
                    [](std::string* out, Size size) { absl::StrAppend(out, SizeText(size)); }),
      "]");
}

}  // namespace reprise
