#include "runtime/engine/signature.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/dim_expression.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

// A dim that is computed from others ("past + 1"): all of its symbols are dims of required inputs.
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

absl::StatusOr<std::map<std::string, int64_t>> MatchShapes(const std::vector<ModelIo>& inputs,
                                                           absl::Span<const Shape* const> shapes) {
  struct Found {
    int64_t size;
    const ModelIo* input;
  };
  std::map<std::string, Found> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (shapes[i] == nullptr) continue;
    const ModelIo& input = inputs[i];
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
      if (dim.is_constant()) {
        if (dim.size != shape[d]) {
          return Mismatch(input, shape,
                          absl::StrCat("dim ", d, " is ", shape[d], " instead of ", dim.size));
        }
        continue;
      }
      if (IsDerived(dim, inputs)) continue;
      auto [it, added] = found.try_emplace(dim.symbol, Found{shape[d], &input});
      if (!added && it->second.size != shape[d]) {
        return Mismatch(input, shape,
                        absl::StrCat("'", dim.symbol, "' is ", shape[d], " here and ",
                                     it->second.size, " in input '", it->second.input->name, "'"));
      }
    }
  }
  std::map<std::string, int64_t> sizes;
  for (const auto& [symbol, one] : found) sizes[symbol] = one.size;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (shapes[i] == nullptr) continue;
    for (size_t d = 0; d < shapes[i]->size(); ++d) {
      const Dim& dim = inputs[i].dims[d];
      if (dim.is_constant() || !IsDerived(dim, inputs)) continue;
      ASSIGN_OR_RETURN(const int64_t expected, DimSize(dim, sizes));
      if (expected != (*shapes[i])[d]) {
        return Mismatch(
            inputs[i], *shapes[i],
            absl::StrCat("'", dim.symbol, "' is ", (*shapes[i])[d], " instead of ", expected));
      }
    }
  }
  return sizes;
}

}  // namespace reprise
