// Term: what a size says about itself, and SizeTable, which owns the terms of one reading.
//
// Terms are interned: two that are built alike are one. Sums and products are kept as polynomials
// over atoms (symbols, quotients, extremes, choices, calls), in one order, so that polynomials that
// are equal are one term as well. Quotients by constants take out what divides, and merge:
// floor(floor(x / a) / b) is floor(x / (a * b)).
//
// Numbers wrap around as int64 does in kernels; SizeEvaluator (region.h) refuses what overflows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "runtime/shapes/region.h"
#include "runtime/shapes/size.h"

namespace reprise {

class SizeTable;

enum class TermKind : uint8_t {
  kSymbol,      // the size of an axis
  kIndex,       // a position along dim `number` of a table
  kPolynomial,  // number + sum of parts
  kQuotient,    // floor(operand 0 / operand 1); 0 where the divisor is 0
  kLeast,       // the smaller of two
  kLargest,
  kChoice,  // operand 1 where operand 0 is not 0, else operand 2
  kCall,    // a function of the operands
};

// A product: `factor` times the atoms, which are sorted by id.
struct TermPart {
  int64_t factor = 0;
  std::vector<const Term*> atoms;
};

// A function that terms call: an op that has no normal form, or a table of numbers.
class SizeFunction {
 public:
  virtual ~SizeFunction() = default;
  // Functions with equal keys are one.
  virtual const std::string& key() const = 0;
  // Returns nullopt where the operands are none that it takes.
  virtual std::optional<int64_t> At(absl::Span<const int64_t> operands) const = 0;
  // Returns the numbers that it may give.
  virtual Interval range() const { return {}; }
};

class Term {
 public:
  TermKind kind;
  bool indexed = false;  // holds an index: there is no hint, and nothing to decide
  uint32_t id = 0;       // operands have smaller ones
  SizeTable* table = nullptr;
  int64_t hint = 0;
  int64_t number = 0;                      // a symbol's or an index's; a polynomial's constant
  std::vector<TermPart> parts;             // a polynomial's
  std::vector<Size> operands;              // those of all others
  const SizeFunction* function = nullptr;  // a call's
};

// A polynomial as a value.
struct Polynomial {
  int64_t constant = 0;
  std::vector<TermPart> parts;  // sorted, no factor is 0

  static Polynomial Of(Size size);
  void Add(const Polynomial& other, int64_t factor);
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  // Returns the quotient where it leaves no rest, for all numbers but zeros of `by`.
  std::optional<Polynomial> DividedBy(const Polynomial& by) const;
  // Returns the largest number that divides all factors (not the constant); 0 without parts.
  int64_t Content() const;
};

class SizeTable {
 public:
  // The largest size of an axis that terms are right for.
  static constexpr int64_t kMostSize = int64_t{1} << 40;

  // In an open table numbers stay terms where the bounds of axes do not decide about them: nothing
  // is chosen for the sizes at hand. What a shape rule must decide it does, and the guard is
  // recorded each time, for each node that asks.
  explicit SizeTable(bool open = false) : open_(open) {}
  SizeTable(const SizeTable&) = delete;
  SizeTable& operator=(const SizeTable&) = delete;

  // Returns the axis `name`, which is from `least` to `most`. One symbol a name: the first hint
  // holds.
  Size Symbol(const std::string& name, int64_t hint, int64_t least = 0, int64_t most = kMostSize);
  Size Index(int64_t dim);
  Size Choice(Size condition, Size yes, Size no);
  Size Call(std::shared_ptr<const SizeFunction> function, std::vector<Size> operands);
  Size Make(const Polynomial& polynomial);
  Size Quotient(Size a, Size b);
  Size Extreme(TermKind kind, Size a, Size b);
  // `size` with indices replaced: index `d` by `indices[d]`.
  Size Substitute(Size size, absl::Span<const Size> indices);

  bool open() const { return open_; }
  // Returns the sizes that `Symbol` was given for symbol number `symbol`.
  const Interval& RangeOf(size_t symbol) const { return ranges_[symbol]; }

  // Bounds that hold in the region so far.
  Interval Bounds(Size size) const;
  // Returns whether `size` is 0, or at least 0. Records what bounds leave open, unless it is
  // indexed: nullopt then.
  std::optional<bool> IsZero(Size size);
  std::optional<bool> IsNotNegative(Size size);
  // Returns the same by bounds alone: nullopt where they leave it open.
  std::optional<bool> KnownZero(Size size) const;
  std::optional<bool> KnownNotNegative(Size size) const;
  // Takes for granted that `size` is not negative, as dims are wherever a model takes its sizes.
  void AssumeNotNegative(Size size);

  // Who asks, for the guards that follow.
  void set_origin(int64_t node) {
    origin_ = node;
    unlike_.clear();
  }
  // The sizes that the rule of this node compared and that were not equal, in order. Where the rule
  // then refuses them, two of them had to be.
  using Pair = std::pair<Size, Size>;
  const std::vector<Pair>& unlike() const { return unlike_; }
  void AddUnlike(Size a, Size b) { unlike_.emplace_back(a, b); }
  const std::vector<Guard>& guards() const { return guards_; }
  const std::vector<std::string>& symbols() const { return symbols_; }
  const std::vector<Size>& symbol_sizes() const { return sizes_; }  // Indexed by symbol.
  const std::vector<std::unique_ptr<const Term>>& terms() const { return terms_; }

 private:
  // Returns the term that is interned already, or nullptr.
  const Term* Find(const Term& like) const;
  Size Intern(Term term);
  Interval BoundsOfAtom(const Term& atom) const;
  Interval BoundsOf(const Polynomial& polynomial, int depth) const;
  Interval Relaxed(const Polynomial& polynomial, const Interval& known, int depth) const;
  // Returns the bounds of a polynomial over symbols alone, each of them once in a product: its
  // extremes lie where all sizes are extreme. nullopt for others.
  std::optional<Interval> CornersOf(const Polynomial& polynomial) const;
  void Learn(Size form, Guard::Relation relation, int64_t number);

  const bool open_;
  std::vector<std::string> symbols_;
  std::vector<Interval> ranges_;  // one a symbol
  std::vector<Size> sizes_;       // one a symbol
  std::map<std::string, size_t> symbol_numbers_;
  std::vector<std::unique_ptr<const Term>> terms_;  // indexed by id
  absl::flat_hash_map<std::string, const Term*> by_key_;
  absl::flat_hash_map<std::string, std::shared_ptr<const SizeFunction>> functions_;
  absl::flat_hash_map<const Term*, Interval> known_;  // what guards say of terms
  absl::flat_hash_set<std::pair<const Term*, int64_t>> unequal_;
  std::vector<Guard> guards_;
  std::vector<Pair> unlike_;  // what was compared since the origin was set
  int64_t origin_ = -1;
  bool assumes_ = false;  // what is learnt is no guard
};

}  // namespace reprise
