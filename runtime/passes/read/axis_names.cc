#include "runtime/passes/read/axis_names.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// Returns the axis that is dim 0 of every input that has dims; empty when there is none.
std::string BatchSymbol(absl::Span<const std::vector<Dim>> inputs, const MergedSymbols& merged) {
  std::string batch;
  for (const std::vector<Dim>& dims : inputs) {
    if (dims.empty()) continue;
    const auto it = merged.representative.find(dims[0].symbol);
    if (it == merged.representative.end()) return "";
    if (!batch.empty() && batch != it->second) return "";
    batch = it->second;
  }
  return batch;
}

// Returns whether the model calls it one: states' batch ([layers, batch, features]) among its own.
bool IsNamedBatch(const Axis& axis) {
  return absl::c_any_of(axis.symbols, [](const std::string& symbol) {
    return absl::StrContains(absl::AsciiStrToLower(symbol), "batch");
  });
}

// Returns whether an axis is dim 0 wherever it is, and somewhere of pictures ([rows, 3, height,
// width]) or of lines of ids ([rows, length]). `[steps, rows, channels]` and `[nodes, features]`
// are neither.
bool CountsRows(absl::Span<const std::vector<Dim>> inputs, const MergedSymbols& merged,
                const std::string& axis) {
  bool found = false;
  for (const std::vector<Dim>& dims : inputs) {
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto it = merged.representative.find(dims[i].symbol);
      if (it == merged.representative.end() || it->second != axis) continue;
      if (i > 0) return false;
      if (dims.size() > 1) found |= (dims.size() > 2) == dims[1].is_constant();
    }
  }
  return found;
}

// Returns the axis of a class: a name that the model gave stands for it if there is one, else the
// first.
Axis AxisOf(std::vector<std::string> symbols) {
  const auto named = absl::c_find_if(symbols, [](const std::string& symbol) {
    return !absl::StrContains(symbol, ':') && ExpressionSymbols(symbol).empty();
  });
  Axis axis;
  axis.symbol = named == symbols.end() ? symbols.front() : *named;
  axis.symbols = std::move(symbols);
  return axis;
}

}  // namespace

void MakeAxes(absl::Span<const std::vector<Dim>> inputs, absl::Span<const std::string> symbols,
              std::vector<std::vector<std::string>> classes, MergedSymbols& result) {
  const auto order = [&](const std::string& symbol) {
    return absl::c_find(symbols, symbol) - symbols.begin();
  };
  for (std::vector<std::string>& one : classes) {
    absl::c_sort(one, [&](const auto& a, const auto& b) { return order(a) < order(b); });
    Axis axis = AxisOf(std::move(one));
    for (const std::string& symbol : axis.symbols) result.representative[symbol] = axis.symbol;
    result.axes.push_back(std::move(axis));
  }
  const std::string batch = BatchSymbol(inputs, result);
  for (Axis& axis : result.axes) {
    axis.is_batch = axis.symbol == batch;
    axis.counts_rows =
        !axis.is_batch && (IsNamedBatch(axis) || CountsRows(inputs, result, axis.symbol));
  }
  absl::c_sort(result.axes, [&](const Axis& a, const Axis& b) {
    if (a.is_batch != b.is_batch) return a.is_batch;
    return order(a.symbols.front()) < order(b.symbols.front());
  });
  const size_t others = result.axes.size() - (batch.empty() ? 0 : 1);
  for (Axis& axis : result.axes) {
    axis.label = axis.is_batch ? "batch" : others == 1 ? "sequence" : axis.symbol;
  }
}

}  // namespace reprise
