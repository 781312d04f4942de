// Bounds of terms, and the guards that say more where a rule asks.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

constexpr int64_t kNoLow = Interval::kNoLow, kNoHigh = Interval::kNoHigh;
// How many atoms one question takes apart.
constexpr int kMostDepth = 4;

int64_t Saturated(__int128 number) {
  return number <= kNoLow ? kNoLow : number >= kNoHigh ? kNoHigh : static_cast<int64_t>(number);
}

bool IsEnd(int64_t number) { return number == kNoLow || number == kNoHigh; }

int64_t TimesEnd(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (IsEnd(a) || IsEnd(b)) return (a < 0) == (b < 0) ? kNoHigh : kNoLow;
  return Saturated(static_cast<__int128>(a) * b);
}

Interval Times(const Interval& a, const Interval& b) {
  const auto [low, high] = std::minmax({TimesEnd(a.low, b.low), TimesEnd(a.low, b.high),
                                        TimesEnd(a.high, b.low), TimesEnd(a.high, b.high)});
  return {low, high};
}

Interval Plus(const Interval& a, const Interval& b) {
  const auto sum = [](int64_t x, int64_t y, int64_t end) {
    return x == end || y == end ? end : Saturated(static_cast<__int128>(x) + y);
  };
  return {sum(a.low, b.low, kNoLow), sum(a.high, b.high, kNoHigh)};
}

Interval Hull(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// For divisors above 0.
Interval Divided(const Interval& a, const Interval& b) {
  const auto end = [](int64_t x, int64_t by) {
    if (IsEnd(x)) return x;
    return by == kNoHigh ? (x < 0 ? int64_t{-1} : int64_t{0}) : FloorDivide(x, by);
  };
  const auto [low, high] =
      std::minmax({end(a.low, b.low), end(a.low, b.high), end(a.high, b.low), end(a.high, b.high)});
  return {low, high};
}

bool Decides(const Interval& bounds) { return bounds.low >= 0 || bounds.high < 0; }

// Parts without their constant and content, the first factor above 0.
struct Form {
  Polynomial parts;
  int64_t factor = 1;
};
Form FormOf(const Polynomial& polynomial) {
  Form form{.parts = {.parts = polynomial.parts}, .factor = polynomial.Content()};
  if (form.factor == 0) form.factor = 1;
  if (polynomial.parts[0].factor < 0) form.factor = -form.factor;
  for (TermPart& part : form.parts.parts) part.factor /= form.factor;
  return form;
}

}  // namespace

Interval SizeTable::BoundsOfAtom(const Term& atom) const {
  const auto operand = [&](size_t i) { return Bounds(atom.operands[i]); };
  Interval bounds;
  switch (atom.kind) {
    case TermKind::kIndex:
      bounds.low = 0;
      break;
    case TermKind::kQuotient:
      if (const Interval by = operand(1); by.low > 0) bounds = Divided(operand(0), by);
      break;
    case TermKind::kLeast: {
      const Interval a = operand(0), b = operand(1);
      bounds = {std::min(a.low, b.low), std::min(a.high, b.high)};
      break;
    }
    case TermKind::kLargest: {
      const Interval a = operand(0), b = operand(1);
      bounds = {std::max(a.low, b.low), std::max(a.high, b.high)};
      break;
    }
    case TermKind::kChoice:
      bounds = Hull(operand(1), operand(2));
      break;
    case TermKind::kCall:
      bounds = atom.function->range();
      break;
    case TermKind::kSymbol:
    case TermKind::kPolynomial:
      break;
  }
  const auto it = known_.find(&atom);
  return it == known_.end() ? bounds : bounds.Within(it->second);
}

// Bounds by taking one atom apart: a quotient by its two linear bounds, an extreme or a choice by
// its operands, one after the other.
Interval SizeTable::Relaxed(const Polynomial& polynomial, const Interval& known, int depth) const {
  for (const TermPart& part : polynomial.parts) {
    if (part.atoms.size() != 1) continue;
    const Term& atom = *part.atoms[0];
    Polynomial rest = polynomial;
    rest.Add({.parts = {part}}, -1);
    if (atom.kind == TermKind::kQuotient && atom.operands[1].is_constant()) {
      // The product by * q lies in [x - by + 1, x].
      const int64_t by = atom.operands[1].hint();
      const Polynomial numerator = Polynomial::Of(atom.operands[0]);
      if (IsEnd(Saturated(static_cast<__int128>(by) * part.factor))) continue;
      const auto with = [&](int64_t less) {
        Polynomial sum;
        sum.Add(rest, by);
        sum.Add(numerator, part.factor);
        sum.constant -= part.factor * less;
        return BoundsOf(sum, depth + 1);
      };
      const Interval at_most = with(0), at_least = with(by - 1);
      const Interval scaled = part.factor > 0 ? Interval{at_least.low, at_most.high}
                                              : Interval{at_most.low, at_least.high};
      // Rounded towards what is right for numbers that are whole.
      const Interval found{IsEnd(scaled.low) ? scaled.low : -FloorDivide(-scaled.low, by),
                           IsEnd(scaled.high) ? scaled.high : FloorDivide(scaled.high, by)};
      return known.Within(found);
    }
    if (atom.kind == TermKind::kLeast || atom.kind == TermKind::kLargest ||
        atom.kind == TermKind::kChoice) {
      const size_t first = atom.kind == TermKind::kChoice ? 1 : 0;
      const auto with = [&](size_t i) {
        Polynomial sum = rest;
        sum.Add(Polynomial::Of(atom.operands[i]), part.factor);
        return BoundsOf(sum, depth + 1);
      };
      const Interval a = with(first), b = with(first + 1);
      if (atom.kind == TermKind::kChoice) return known.Within(Hull(a, b));
      // The larger one is no less than each, and so the sum where it counts up.
      if ((atom.kind == TermKind::kLargest) == (part.factor > 0)) {
        return known.Within({std::max(a.low, b.low), std::max(a.high, b.high)});
      }
      return known.Within({std::min(a.low, b.low), std::min(a.high, b.high)});
    }
  }
  return known;
}

std::optional<Interval> SizeTable::CornersOf(const Polynomial& polynomial) const {
  constexpr size_t kMostSymbols = 4;
  absl::InlinedVector<const Term*, kMostSymbols> symbols;
  for (const TermPart& part : polynomial.parts) {
    for (size_t i = 0; i < part.atoms.size(); ++i) {
      const Term* const atom = part.atoms[i];
      if (atom->kind != TermKind::kSymbol || (i > 0 && part.atoms[i - 1] == atom)) {
        return std::nullopt;
      }
      if (absl::c_linear_search(symbols, atom)) continue;
      if (symbols.size() == kMostSymbols) return std::nullopt;
      symbols.push_back(atom);
    }
  }
  Interval bounds{kNoHigh, kNoLow};
  for (size_t corner = 0; corner < size_t{1} << symbols.size(); ++corner) {
    __int128 sum = polynomial.constant;
    for (const TermPart& part : polynomial.parts) {
      __int128 product = part.factor;
      for (const Term* const atom : part.atoms) {
        const auto at = absl::c_find(symbols, atom) - symbols.begin();
        const Interval range = BoundsOfAtom(*atom);
        const int64_t end = (corner >> at & 1) != 0 ? range.high : range.low;
        if (__builtin_mul_overflow(product, static_cast<__int128>(end), &product)) {
          return std::nullopt;
        }
      }
      if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    bounds = {std::min(bounds.low, Saturated(sum)), std::max(bounds.high, Saturated(sum))};
  }
  return bounds;
}

Interval SizeTable::BoundsOf(const Polynomial& polynomial, int depth) const {
  Interval bounds{polynomial.constant, polynomial.constant};
  for (const TermPart& part : polynomial.parts) {
    Interval product{part.factor, part.factor};
    for (size_t i = 0; i < part.atoms.size(); ++i) {
      Interval atom = BoundsOfAtom(*part.atoms[i]);
      if (i + 1 < part.atoms.size() && part.atoms[i + 1] == part.atoms[i]) {
        // A square.
        atom = Times(atom, atom);
        atom.low = std::max<int64_t>(atom.low, 0);
        ++i;
      }
      product = Times(product, atom);
    }
    bounds = Plus(bounds, product);
  }
  if (!polynomial.parts.empty() &&
      (polynomial.parts.size() > 1 || polynomial.parts[0].atoms.size() > 1)) {
    const Form form = FormOf(polynomial);
    // Forms that guards know are interned: none that is not there is looked for in vain.
    Term probe{.kind = TermKind::kPolynomial, .parts = form.parts.parts};
    if (const Term* term = Find(probe); term != nullptr) {
      if (const auto it = known_.find(term); it != known_.end()) {
        bounds = bounds.Within(Plus({polynomial.constant, polynomial.constant},
                                    Times({form.factor, form.factor}, it->second)));
      }
    }
  }
  if (Decides(bounds)) return bounds;
  if (const auto corners = CornersOf(polynomial)) return bounds.Within(*corners);
  if (depth >= kMostDepth) return bounds;
  return Relaxed(polynomial, bounds, depth);
}

Interval SizeTable::Bounds(Size size) const {
  if (size.is_constant()) return {size.hint(), size.hint()};
  return BoundsOf(Polynomial::Of(size), 0);
}

void SizeTable::Learn(Size form, Guard::Relation relation, int64_t number) {
  if (!assumes_) {
    guards_.push_back({.form = form, .relation = relation, .number = number, .origin = origin_});
    if (open_) return;
  }
  if (relation == Guard::Relation::kUnequal) {
    unequal_.insert({form.term(), number});
    return;
  }
  Interval said;
  if (relation != Guard::Relation::kAtMost) said.low = number;
  if (relation != Guard::Relation::kAtLeast) said.high = number;
  Interval& known = known_[form.term()];
  known = known.Within(said);
}

std::optional<bool> SizeTable::KnownZero(Size size) const {
  if (size.is_constant()) return size.hint() == 0;
  const Interval bounds = Bounds(size);
  if (bounds.low > 0 || bounds.high < 0) return false;
  if (bounds.low == 0 && bounds.high == 0) return true;
  const Polynomial polynomial = Polynomial::Of(size);
  if (polynomial.constant % FormOf(polynomial).factor != 0) return false;
  return std::nullopt;
}

std::optional<bool> SizeTable::KnownNotNegative(Size size) const {
  const Interval bounds = Bounds(size);
  if (bounds.low >= 0) return true;
  if (bounds.high < 0) return false;
  return std::nullopt;
}

void SizeTable::AssumeNotNegative(Size size) {
  if (size.hint() < 0) return;
  assumes_ = true;
  (void)IsNotNegative(size);
  assumes_ = false;
}

std::optional<bool> SizeTable::IsZero(Size size) {
  const std::optional<bool> known = KnownZero(size);
  if (known.has_value() || size.term()->indexed) return known;
  const Polynomial polynomial = Polynomial::Of(size);
  const Form form = FormOf(polynomial);
  const int64_t number = -polynomial.constant / form.factor;
  const Size parts = Make(form.parts);
  if (unequal_.contains({parts.term(), number})) return false;
  if (size.hint() == 0) {
    Learn(parts, Guard::Relation::kEqual, number);
    return true;
  }
  if (parts.term()->kind == TermKind::kPolynomial) {
    Learn(parts, Guard::Relation::kUnequal, number);
  } else if (parts.hint() > number) {
    // All sizes of an axis that are larger, rather than two pieces: most rules ask for 0 or 1.
    Learn(parts, Guard::Relation::kAtLeast, number + 1);
  } else {
    Learn(parts, Guard::Relation::kAtMost, number - 1);
  }
  return false;
}

std::optional<bool> SizeTable::IsNotNegative(Size size) {
  const std::optional<bool> known = KnownNotNegative(size);
  if (known.has_value() || size.term()->indexed) return known;
  const Polynomial polynomial = Polynomial::Of(size);
  const Form form = FormOf(polynomial);
  const Size parts = Make(form.parts);
  const bool holds = size.hint() >= 0;
  // factor * parts + constant >= 0, or below 0, which is at most -1.
  const int64_t factor = form.factor < 0 ? -form.factor : form.factor;
  const int64_t constant = holds ? polynomial.constant : -1 - polynomial.constant;
  const bool up = (form.factor > 0) == holds;
  const int64_t room = FloorDivide(constant, factor);
  if (up) {
    Learn(parts, Guard::Relation::kAtLeast, -room);
  } else {
    Learn(parts, Guard::Relation::kAtMost, room);
  }
  return holds;
}

}  // namespace reprise
