#include "runtime/engine/load/made_up_inputs.h"

#include <algorithm>
#include <random>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/numbers.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// An input that is added up along an axis and looked up then (the position of the last token,
// positions counted by a mask) holds no more than this, as masks go, however long the table is.
constexpr int64_t kLargestOfMasks = 3;

}  // namespace

SymbolSizes AllSymbols(absl::Span<const MadeUpInput> inputs, int64_t size) {
  SymbolSizes sizes;
  std::vector<std::string> expressions;
  for (const MadeUpInput& input : inputs) {
    for (const Dim& dim : input.dims) {
      if (dim.is_constant()) continue;
      if (ExpressionSymbols(dim.symbol).empty()) {
        sizes[dim.symbol] = size;
      } else {
        expressions.push_back(dim.symbol);
      }
    }
  }
  // An expression with a symbol that no dim is by itself is an axis like any other.
  SymbolSizes all = sizes;
  for (const std::string& expression : expressions) {
    const bool derived =
        absl::c_all_of(ExpressionSymbols(expression),
                       [&](const std::string& symbol) { return sizes.count(symbol) != 0; });
    if (!derived) all[expression] = size;
  }
  return all;
}

absl::StatusOr<std::vector<Shape>> ShapesAt(absl::Span<const MadeUpInput> inputs,
                                            const SymbolSizes& sizes, int64_t most_elements) {
  std::vector<Shape> shapes;
  double all = 0;
  for (const MadeUpInput& input : inputs) {
    double elements = 1;
    Shape& shape = shapes.emplace_back();
    for (const Dim& dim : input.dims) {
      ASSIGN_OR_RETURN(const int64_t size, DimSize(dim, sizes));
      shape.push_back(size);
      elements *= static_cast<double>(size);
    }
    all += elements;
    if (all > static_cast<double>(most_elements)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "input '", input.name, "' of shape ", ShapeToString(shape),
          " is not made up; inputs of up to ", most_elements, " elements together are"));
    }
  }
  return shapes;
}

Tensor MakeUp(const MadeUpInput& input, const InputRange& range, const Shape& shape,
              uint64_t seed) {
  std::mt19937_64 random(seed);
  Numbers numbers = {input.dtype, shape, std::vector<double>(NumElements(shape), 1)};
  if (IsFloating(input.dtype)) {
    std::normal_distribution<double> normal;
    absl::c_generate(numbers.values, [&] { return normal(random); });
  } else if (range.limited && range.high > kLargestOfMasks) {
    std::uniform_int_distribution<int64_t> uniform(
        std::min(std::max<int64_t>(range.low, 0), range.high), range.high);
    absl::c_generate(numbers.values, [&] { return static_cast<double>(uniform(random)); });
  } else if (range.limited) {
    absl::c_fill(numbers.values, std::clamp<int64_t>(1, range.low, range.high));
  }
  return ToTensor(numbers);
}

}  // namespace reprise
