#include "runtime/shapes/periods.h"

#include <numeric>
#include <string>

#include "runtime/shapes/region.h"

namespace reprise {
namespace {

// The largest number of sizes after which sums of quotients begin anew. Others are not looked at.
constexpr int64_t kLongestPeriod = 1 << 13;

}  // namespace

int64_t CommonPeriod(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const int64_t common = std::lcm(a, b);
  return common <= kLongestPeriod ? common : 0;
}

std::vector<int64_t> PeriodsOf(const SizeTable& table, const Term* axis) {
  std::vector<int64_t> periods;
  periods.reserve(table.terms().size());
  for (const auto& term : table.terms()) {
    int64_t period = 0;
    if (term.get() == axis) {
      period = 1;
    } else if (term->kind == TermKind::kPolynomial) {
      period = 1;
      for (const TermPart& part : term->parts) {
        period = part.atoms.size() == 1 ? CommonPeriod(period, periods[part.atoms[0]->id]) : 0;
      }
    } else if (term->kind == TermKind::kQuotient && !term->operands[0].is_constant() &&
               term->operands[1].is_constant() && term->operands[1].hint() > 0 &&
               term->operands[1].hint() <= kLongestPeriod) {
      // In as many periods as the divisor says the dividend grows by a multiple of it.
      period = periods[term->operands[0].term()->id] * term->operands[1].hint();
      if (period > kLongestPeriod) period = 0;
    }
    periods.push_back(period);
  }
  return periods;
}

bool AgreeEverywhere(const SizeTable& table, const Term* axis, const std::vector<int64_t>& periods,
                     Size a, Size b) {
  if (a.Same(b)) return true;
  if (a.is_constant() || b.is_constant()) return false;
  const size_t id_a = a.term()->id, id_b = b.term()->id;
  if (id_a >= periods.size() || id_b >= periods.size()) return false;
  const int64_t period = CommonPeriod(periods[id_a], periods[id_b]);
  if (period == 0) return false;
  const std::string& name = table.symbols()[static_cast<size_t>(axis->number)];
  SizeEvaluator at(table, {});
  for (int64_t i = 0; i <= period; ++i) {
    at.Move({{name, axis->hint + i}});
    const auto one = at.At(a), other = at.At(b);
    if (!one.has_value() || one != other) return false;
  }
  return true;
}

}  // namespace reprise
