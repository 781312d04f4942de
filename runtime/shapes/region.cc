#include "runtime/shapes/region.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/shapes/term.h"

namespace reprise {

namespace {

// How much sizes grow with each step of one symbol, where that is the same at all sizes of it.
class Slopes {
 public:
  Slopes(const SizeTable& table, SizeEvaluator& sizes, int64_t symbol)
      : sizes_(sizes), symbol_(symbol), known_(table.terms().size()) {}

  std::optional<int64_t> Of(Size size) {
    if (size.is_constant()) return 0;
    Known& known = known_[size.term()->id];
    if (!known.is_set) known = {.is_set = true, .slope = Find(*size.term())};
    return known.slope;
  }

 private:
  struct Known {
    bool is_set = false;
    std::optional<int64_t> slope;
  };

  std::optional<int64_t> Find(const Term& term) {
    if (term.kind == TermKind::kSymbol) return term.number == symbol_ ? 1 : 0;
    if (term.kind == TermKind::kPolynomial) return OfSum(term);
    const bool still = std::all_of(term.operands.begin(), term.operands.end(),
                                   [this](Size operand) { return Of(operand) == 0; });
    return still ? std::optional<int64_t>(0) : std::nullopt;
  }

  std::optional<int64_t> OfSum(const Term& sum) {
    int64_t slope = 0;
    for (const TermPart& part : sum.parts) {
      int64_t product = part.factor;
      bool rises = false;
      for (const Term* atom : part.atoms) {
        const Size size(atom->hint, atom);
        const std::optional<int64_t> own = Of(size);
        if (!own.has_value() || (*own != 0 && rises)) return std::nullopt;
        rises = rises || *own != 0;
        const std::optional<int64_t> factor = *own != 0 ? own : sizes_.At(size);
        if (!factor.has_value() || __builtin_mul_overflow(product, *factor, &product)) {
          return std::nullopt;
        }
      }
      if (rises && __builtin_add_overflow(slope, product, &slope)) return std::nullopt;
    }
    return slope;
  }

  SizeEvaluator& sizes_;
  const int64_t symbol_;
  std::vector<Known> known_;  // Indexed by term.
};

}  // namespace

bool Guard::HoldsFor(int64_t value) const {
  switch (relation) {
    case Relation::kEqual:
      return value == number;
    case Relation::kUnequal:
      return value != number;
    case Relation::kAtLeast:
      return value >= number;
    case Relation::kAtMost:
      return value <= number;
  }
  return false;
}

std::string GuardText(const Guard& guard) {
  constexpr const char* kSigns[] = {" == ", " != ", " >= ", " <= "};
  return absl::StrCat(SizeText(guard.form), kSigns[static_cast<size_t>(guard.relation)],
                      guard.number);
}

SizeEvaluator::SizeEvaluator(const SizeTable& table, const std::map<std::string, int64_t>& axes)
    : table_(table) {
  symbols_.reserve(table.symbols().size());
  for (const Size symbol : table.symbol_sizes()) symbols_.push_back(symbol.hint());
  Move(axes);
}

void SizeEvaluator::Move(const std::map<std::string, int64_t>& axes) {
  ++moves_;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const auto it = axes.find(table_.symbols()[i]);
    if (it != axes.end()) symbols_[i] = it->second;
  }
}

std::optional<int64_t> SizeEvaluator::At(Size size) {
  if (size.is_constant()) return size.hint();
  const Term& term = *size.term();
  if (term.indexed) return Compute(term);
  if (memo_.size() <= term.id) memo_.resize(table_.terms().size());
  if (memo_[term.id].move != moves_) {
    const std::optional<int64_t> value = Compute(term);
    memo_[term.id] = {.move = moves_, .value = value};
  }
  return memo_[term.id].value;
}

std::optional<int64_t> SizeEvaluator::At(Size size, absl::Span<const int64_t> indices) {
  indices_.assign(indices.begin(), indices.end());
  return At(size);
}

bool SizeEvaluator::InRegion() {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const Interval& range = table_.RangeOf(i);
    if (symbols_[i] < range.low || symbols_[i] > range.high) return false;
  }
  return std::all_of(table_.guards().begin(), table_.guards().end(), [&](const Guard& guard) {
    const std::optional<int64_t> value = At(guard.form);
    return value.has_value() && guard.HoldsFor(*value);
  });
}

int64_t SizeEvaluator::EndAlong(const std::string& symbol) {
  const auto& symbols = table_.symbols();
  const auto at = std::find(symbols.begin(), symbols.end(), symbol) - symbols.begin();
  if (at == static_cast<int64_t>(symbols.size())) return Interval::kNoHigh;
  const int64_t now = symbols_[static_cast<size_t>(at)];
  const Interval& range = table_.RangeOf(static_cast<size_t>(at));
  Slopes slopes(table_, *this, at);
  int64_t steps = range.high - now;  // that all guards hold for
  for (const Guard& guard : table_.guards()) {
    const std::optional<int64_t> slope = slopes.Of(guard.form), value = At(guard.form);
    if (!slope.has_value() || !value.has_value()) return now + 1;
    if (*slope == 0) continue;
    const int64_t away = guard.number - *value;  // Signed as the steps to the bound are.
    using Relation = Guard::Relation;
    if (guard.relation == Relation::kEqual) return now + 1;
    if (guard.relation == Relation::kUnequal) {
      if (away % *slope == 0 && away / *slope > 0) steps = std::min(steps, away / *slope - 1);
    } else if ((guard.relation == Relation::kAtMost) == (*slope > 0)) {
      steps = std::min(steps, away / *slope);
    }
  }
  return steps >= Interval::kNoHigh - now - 1 ? Interval::kNoHigh : now + steps + 1;
}

std::optional<int64_t> SizeEvaluator::Compute(const Term& term) {
  const auto operand = [&](size_t i) { return At(term.operands[i]); };
  switch (term.kind) {
    case TermKind::kSymbol:
      return symbols_[static_cast<size_t>(term.number)];
    case TermKind::kIndex:
      return indices_[static_cast<size_t>(term.number)];
    case TermKind::kPolynomial: {
      int64_t sum = term.number;
      for (const TermPart& part : term.parts) {
        int64_t product = part.factor;
        for (const Term* atom : part.atoms) {
          const std::optional<int64_t> value = At(Size(atom->hint, atom));
          if (!value.has_value() || __builtin_mul_overflow(product, *value, &product)) {
            return std::nullopt;
          }
        }
        if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
      }
      return sum;
    }
    case TermKind::kChoice: {
      // The other one may have no value.
      const std::optional<int64_t> condition = operand(0);
      return condition.has_value() ? operand(*condition != 0 ? 1 : 2) : std::nullopt;
    }
    case TermKind::kCall: {
      std::vector<int64_t> values;
      for (size_t i = 0; i < term.operands.size(); ++i) {
        const std::optional<int64_t> value = operand(i);
        if (!value.has_value()) return std::nullopt;
        values.push_back(*value);
      }
      return term.function->At(values);
    }
    case TermKind::kQuotient:
    case TermKind::kLeast:
    case TermKind::kLargest: {
      const std::optional<int64_t> a = operand(0), b = operand(1);
      if (!a.has_value() || !b.has_value()) return std::nullopt;
      if (term.kind == TermKind::kLeast) return std::min(*a, *b);
      if (term.kind == TermKind::kLargest) return std::max(*a, *b);
      return *b == 0 ? 0 : *b < 0 ? FloorDivide(-*a, -*b) : FloorDivide(*a, *b);
    }
  }
  return std::nullopt;
}

}  // namespace reprise
