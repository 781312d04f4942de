// SymbolSum: a sum of multiples of symbols, as a size that must be equal to another one says it.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "runtime/shapes/size.h"

namespace reprise {

struct SymbolSum {
  std::map<size_t, int64_t> factors;  // the multiple of each symbol; none is 0
  int64_t constant = 0;

  // Returns the symbol that this is, if it is one and nothing else.
  std::optional<size_t> IsSymbol() const;
  void Scale(int64_t factor);
  void Add(const SymbolSum& other, int64_t factor);
  // Puts `sum` in the place of `symbol`.
  void Replace(size_t symbol, const SymbolSum& sum);
  // `sizes`: by symbol.
  Size At(absl::Span<const Size> sizes) const;
  // "past + 2 * sequence - 1", as dims say it (shapes/dim_expression.h).
  std::string ToString(absl::Span<const std::string> names) const;
};

// Returns the sum whose zero is the zero of `size`: factors that all parts share are left out, for
// they are not 0, and extremes and choices are those of their operands that the hints choose.
// nullopt where `size` is no such sum. `symbol_of`: the number of a symbol by its name.
std::optional<SymbolSum> LinearSum(Size size,
                                   const std::function<size_t(const std::string&)>& symbol_of);

}  // namespace reprise
