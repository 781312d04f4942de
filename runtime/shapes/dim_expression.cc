#include "runtime/shapes/dim_expression.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr absl::string_view kOperators = "+-*";
// Signs of dims that exporters write and that we do not compute: quotients, functions, brackets.
constexpr absl::string_view kOpaque = "/%^(),";

bool IsNumber(absl::string_view factor) {
  int64_t value;
  return absl::SimpleAtoi(factor, &value);
}

// Calls `visit(factor, separator)` for every factor and the operator behind it, ' ' at the end.
template <typename Visit>
void ForEachFactor(absl::string_view text, Visit visit) {
  while (true) {
    const size_t end = text.find_first_of(kOperators);
    const absl::string_view factor = absl::StripAsciiWhitespace(text.substr(0, end));
    visit(factor, end == absl::string_view::npos ? ' ' : text[end]);
    if (end == absl::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool MultiplyOverflows(int64_t a, int64_t b, int64_t* result) {
  return __builtin_mul_overflow(a, b, result);
}
bool AddOverflows(int64_t a, int64_t b, int64_t* result) {
  return __builtin_add_overflow(a, b, result);
}

// Returns the size of one term of a dim expression: a number, a symbol, or number * symbol.
template <typename Number>
absl::StatusOr<Number> TermSize(absl::string_view term, const std::string& whole,
                                const std::map<std::string, Number>& sizes) {
  Number product = 1;
  while (true) {
    const size_t star = term.find('*');
    const absl::string_view factor = absl::StripAsciiWhitespace(term.substr(0, star));
    int64_t number = 0;
    Number value = 0;
    if (absl::SimpleAtoi(factor, &number)) {
      value = number;
    } else {
      auto it = sizes.find(std::string(factor));
      if (it == sizes.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the binding has no size for '", factor, "'",
                         factor == whole ? "" : absl::StrCat(" in dim '", whole, "'")));
      }
      value = it->second;
    }
    if (MultiplyOverflows(product, value, &product)) {
      return absl::InvalidArgumentError(absl::StrCat("dim '", whole, "' overflows"));
    }
    if (star == absl::string_view::npos) return product;
    term.remove_prefix(star + 1);
  }
}

template <typename Number>
absl::StatusOr<Number> SizeOver(const Dim& dim, const std::map<std::string, Number>& sizes) {
  if (dim.is_constant()) return Number(dim.size);
  Number size = 0;
  if (auto it = sizes.find(dim.symbol); it != sizes.end()) {
    size = it->second;
  } else {
    absl::string_view rest = dim.symbol;
    int64_t sign = 1;
    while (true) {
      const size_t end = rest.find_first_of("+-");
      ASSIGN_OR_RETURN(const Number term, TermSize(rest.substr(0, end), dim.symbol, sizes));
      if (AddOverflows(size, sign * term, &size)) {
        return absl::InvalidArgumentError(absl::StrCat("dim '", dim.symbol, "' overflows"));
      }
      if (end == absl::string_view::npos) break;
      sign = rest[end] == '-' ? -1 : 1;
      rest.remove_prefix(end + 1);
    }
  }
  if (size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dim '", dim.symbol, "' would be negative: ", size));
  }
  return size;
}

}  // namespace

std::vector<std::string> ExpressionSymbols(absl::string_view text) {
  if (text.find_first_of(kOperators) == absl::string_view::npos ||
      text.find_first_of(kOpaque) != absl::string_view::npos) {
    return {};
  }
  std::vector<std::string> symbols;
  bool whole = true;
  ForEachFactor(text, [&](absl::string_view factor, char) {
    if (factor.empty()) whole = false;
    if (!IsNumber(factor)) symbols.emplace_back(factor);
  });
  if (!whole) symbols.clear();
  return symbols;
}

std::string ReplaceSymbols(absl::string_view text,
                           const std::function<std::string(const std::string&)>& replace) {
  std::string result;
  ForEachFactor(text, [&](absl::string_view factor, char separator) {
    absl::StrAppend(&result, IsNumber(factor) ? std::string(factor) : replace(std::string(factor)));
    if (separator != ' ') absl::StrAppend(&result, " ", absl::string_view(&separator, 1), " ");
  });
  return result;
}

absl::StatusOr<int64_t> DimSize(const Dim& dim, const std::map<std::string, int64_t>& sizes) {
  return SizeOver(dim, sizes);
}

absl::StatusOr<Size> SizeOfDim(const Dim& dim, const std::map<std::string, Size>& sizes) {
  return SizeOver(dim, sizes);
}

}  // namespace reprise
