#include "runtime/passes/read/symbol_sums.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

constexpr int kMostDepth = 8;

// Returns the operand that an extreme or a choice is at the hints; nullopt of other atoms.
std::optional<Size> ChosenOperand(const Term& atom) {
  switch (atom.kind) {
    case TermKind::kLeast:
    case TermKind::kLargest:
      return atom.operands[atom.operands[0].hint() == atom.hint ? 0 : 1];
    case TermKind::kChoice:
      return atom.operands[atom.operands[0].hint() != 0 ? 1 : 2];
    default:
      return std::nullopt;
  }
}

// `polynomial` without the atoms that all of its parts have; a constant has none.
Polynomial WithoutShared(Polynomial polynomial) {
  if (polynomial.constant != 0 || polynomial.parts.empty()) return polynomial;
  const std::vector<const Term*> first = polynomial.parts[0].atoms;
  for (const Term* atom : first) {
    const bool shared = absl::c_all_of(polynomial.parts, [&](const TermPart& part) {
      return absl::c_linear_search(part.atoms, atom);
    });
    if (!shared) continue;
    for (TermPart& part : polynomial.parts) part.atoms.erase(absl::c_find(part.atoms, atom));
  }
  for (TermPart& part : polynomial.parts) {
    if (part.atoms.empty()) polynomial.constant += part.factor;
  }
  std::erase_if(polynomial.parts, [](const TermPart& part) { return part.atoms.empty(); });
  return polynomial;
}

class LinearReader {
 public:
  explicit LinearReader(const std::function<size_t(const std::string&)>& symbol_of)
      : symbol_of_(symbol_of) {}

  std::optional<SymbolSum> Of(const Polynomial& polynomial, int depth) const {
    if (depth > kMostDepth) return std::nullopt;
    SymbolSum sum{.constant = polynomial.constant};
    for (const TermPart& part : polynomial.parts) {
      if (part.atoms.size() != 1) return std::nullopt;
      const Term& atom = *part.atoms[0];
      if (atom.kind == TermKind::kSymbol) {
        const std::string& name = atom.table->symbols()[static_cast<size_t>(atom.number)];
        sum.Add({.factors = {{symbol_of_(name), 1}}}, part.factor);
        continue;
      }
      const std::optional<Size> chosen = ChosenOperand(atom);
      if (!chosen.has_value()) return std::nullopt;
      const std::optional<SymbolSum> inner = Of(Polynomial::Of(*chosen), depth + 1);
      if (!inner.has_value()) return std::nullopt;
      sum.Add(*inner, part.factor);
    }
    return sum;
  }

 private:
  const std::function<size_t(const std::string&)>& symbol_of_;
};

}  // namespace

std::optional<size_t> SymbolSum::IsSymbol() const {
  if (factors.size() != 1 || constant != 0 || factors.begin()->second != 1) return std::nullopt;
  return factors.begin()->first;
}

void SymbolSum::Scale(int64_t factor) {
  for (auto& [symbol, own] : factors) own *= factor;
  constant *= factor;
}

void SymbolSum::Add(const SymbolSum& other, int64_t factor) {
  for (const auto& [symbol, own] : other.factors) {
    if ((factors[symbol] += factor * own) == 0) factors.erase(symbol);
  }
  constant += factor * other.constant;
}

void SymbolSum::Replace(size_t symbol, const SymbolSum& sum) {
  const auto it = factors.find(symbol);
  if (it == factors.end()) return;
  const int64_t factor = it->second;
  factors.erase(it);
  Add(sum, factor);
}

Size SymbolSum::At(absl::Span<const Size> sizes) const {
  Size size = constant;
  for (const auto& [symbol, factor] : factors) size += sizes[symbol] * factor;
  return size;
}

std::string SymbolSum::ToString(absl::Span<const std::string> names) const {
  std::map<std::string, int64_t> by_name;
  for (const auto& [symbol, factor] : factors) by_name[names[symbol]] = factor;
  std::string text;
  // A sum does not begin with a sign.
  for (const bool added : {true, false}) {
    for (const auto& [name, factor] : by_name) {
      if ((factor > 0) != added) continue;
      absl::StrAppend(&text, added ? (text.empty() ? "" : " + ") : " - ",
                      std::abs(factor) == 1 ? "" : absl::StrCat(std::abs(factor), " * "), name);
    }
  }
  if (constant != 0) {
    absl::StrAppend(&text, constant > 0 ? " + " : " - ", std::abs(constant));
  }
  return text;
}

std::optional<SymbolSum> LinearSum(Size size,
                                   const std::function<size_t(const std::string&)>& symbol_of) {
  if (size.is_constant()) return SymbolSum{.constant = size.hint()};
  if (size.term()->indexed) return std::nullopt;
  std::optional<SymbolSum> sum = LinearReader(symbol_of).Of(WithoutShared(Polynomial::Of(size)), 0);
  if (!sum.has_value()) return sum;
  int64_t shared = std::abs(sum->constant);
  for (const auto& [symbol, factor] : sum->factors) shared = std::gcd(shared, factor);
  if (shared > 1) {
    for (auto& [symbol, factor] : sum->factors) factor /= shared;
    sum->constant /= shared;
  }
  return sum;
}

}  // namespace reprise
