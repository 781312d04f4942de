#include "runtime/engine/types/input_signature.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// Returns whether a dim is computed from others ("past + 1"): all of its symbols are dims of
// required inputs.
bool IsDerived(const Dim& dim, const std::vector<ModelIo>& inputs) {
  const std::vector<std::string> symbols = ExpressionSymbols(dim.symbol);
  const auto is_dim = [&](const std::string& symbol) {
    return absl::c_any_of(inputs, [&](const ModelIo& input) {
      return !input.optional &&
             absl::c_any_of(input.dims, [&](const Dim& one) { return one.symbol == symbol; });
    });
  };
  return !symbols.empty() && absl::c_all_of(symbols, is_dim);
}

absl::Status Mismatch(const ModelIo& input, const Shape& shape, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' has shape ",
                                                 ShapeToString(shape), ", the model expects ",
                                                 DimsToString(input.dims), ": ", why));
}

}  // namespace

std::string DimsToString(const std::vector<Dim>& dims) {
  return absl::StrCat("[",
                      absl::StrJoin(dims, ", ",
                                    [](std::string* out, const Dim& dim) {
                                      if (dim.is_constant()) {
                                        absl::StrAppend(out, dim.size);
                                      } else {
                                        absl::StrAppend(out, dim.symbol);
                                      }
                                    }),
                      "]");
}

InputSignature::InputSignature(const std::vector<ModelIo>& inputs) : inputs_(&inputs) {
  std::map<std::string, size_t> symbols, derived;
  for (const ModelIo& input : inputs) {
    for (const Dim& dim : input.dims) {
      if (dim.is_constant()) continue;
      if (!IsDerived(dim, inputs)) {
        symbols.emplace(dim.symbol, 0);
      } else if (derived.emplace(dim.symbol, derived_.size()).second) {
        derived_.push_back(dim);
      }
    }
  }
  for (auto& [symbol, index] : symbols) {
    index = symbols_.size();
    symbols_.push_back(symbol);
  }
  for (const ModelIo& input : inputs) {
    std::vector<Rule>& rules = rules_.emplace_back();
    for (const Dim& dim : input.dims) {
      if (dim.is_constant()) {
        rules.push_back({.kind = Rule::Kind::kConstant});
      } else if (const auto symbol = symbols.find(dim.symbol); symbol != symbols.end()) {
        rules.push_back({Rule::Kind::kSymbol, symbol->second, ExpressionSymbols(dim.symbol)});
      } else {
        rules.push_back(
            {Rule::Kind::kDerived, derived.at(dim.symbol), ExpressionSymbols(dim.symbol)});
      }
    }
  }
}

absl::StatusOr<std::map<std::string, int64_t>> InputSignature::Match(
    absl::Span<const Shape* const> shapes) const {
  struct Found {
    int64_t size = -1;
    const ModelIo* input = nullptr;  // null: no input has it
  };
  absl::InlinedVector<Found, 8> found(symbols_.size());
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (shapes[i] == nullptr) continue;
    const ModelIo& input = (*inputs_)[i];
    const Shape& shape = *shapes[i];
    if (shape.size() != input.dims.size()) {
      return Mismatch(input, shape,
                      absl::StrCat("rank ", shape.size(), " instead of ", input.dims.size()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      const Dim& dim = input.dims[d];
      if (shape[d] < 0) {
        return Mismatch(input, shape, absl::StrCat("dim ", d, " is negative"));
      }
      const Rule& rule = rules_[i][d];
      if (rule.kind == Rule::Kind::kConstant && dim.size != shape[d]) {
        return Mismatch(input, shape,
                        absl::StrCat("dim ", d, " is ", shape[d], " instead of ", dim.size));
      }
      if (rule.kind != Rule::Kind::kSymbol) continue;
      Found& one = found[rule.index];
      if (one.input == nullptr) one = {shape[d], &input};
      if (one.size != shape[d]) {
        return Mismatch(input, shape,
                        absl::StrCat("'", dim.symbol, "' is ", shape[d], " here and ", one.size,
                                     " in input '", one.input->name, "'"));
      }
    }
  }
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].input != nullptr) sizes.emplace_hint(sizes.end(), symbols_[i], found[i].size);
  }
  if (!derived_.empty()) RETURN_IF_ERROR(MatchDerived(shapes, sizes));
  return sizes;
}

absl::InlinedVector<size_t, 4> InputSignature::DimsAlong(size_t input,
                                                         absl::string_view symbol) const {
  absl::InlinedVector<size_t, 4> dims;
  for (size_t d = 0; d < rules_[input].size(); ++d) {
    const bool is_it = (*inputs_)[input].dims[d].symbol == symbol;
    if (is_it || absl::c_linear_search(rules_[input][d].parts, symbol)) dims.push_back(d);
  }
  return dims;
}

absl::Status InputSignature::MatchDerived(absl::Span<const Shape* const> shapes,
                                          const std::map<std::string, int64_t>& sizes) const {
  std::vector<std::optional<int64_t>> expected(derived_.size());
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (shapes[i] == nullptr) continue;
    for (size_t d = 0; d < shapes[i]->size(); ++d) {
      const Rule& rule = rules_[i][d];
      if (rule.kind != Rule::Kind::kDerived) continue;
      std::optional<int64_t>& size = expected[rule.index];
      if (!size.has_value()) {
        ASSIGN_OR_RETURN(size, DimSize(derived_[rule.index], sizes));
      }
      if (*size == (*shapes[i])[d]) continue;
      return Mismatch((*inputs_)[i], *shapes[i],
                      absl::StrCat("'", derived_[rule.index].symbol, "' is ", (*shapes[i])[d],
                                   " instead of ", *size));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
