#include "runtime/shapes/region.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/shapes/term.h"

namespace reprise {

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
