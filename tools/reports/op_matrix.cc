#include "tools/reports/op_matrix.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/device/cpu/kernel_list.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise::cli {
namespace {

constexpr char kMissing[] = "-";

constexpr absl::string_view kRowRules[] = {
    kMissing,  "first",     "first",     "third",     "all",      "follow", "follow", "axis",
    "axis",    "attention", "attention", "attention", "append",   "concat", "conv",   "conv",
    "product", "product",   "product",   "product",   "scale",    "reduce", "dim 0",  "last dims",
    "resize",  "slice",     "lookup",    "lookup",    "transpose"};
static_assert(std::size(kRowRules) == static_cast<size_t>(RowRule::kTranspose) + 1);

constexpr absl::string_view kPackRules[] = {
    kMissing,    "axis",      "attention", "bytes", "cumsum",   "lookup", "expand",
    "lookup",    "last dims", "pick",      "place", "product",  "scale",  "reduce",
    "attention", "scale",     "rotary",    "slice", "transpose"};
static_assert(std::size(kPackRules) == static_cast<size_t>(PackRule::kTranspose) + 1);

constexpr absl::string_view kSizes[] = {
    kMissing,  "shape",  "compare", "choose", "convert", "count",     "fill",  "line",
    "product", "sum",    "product", "copy",   "view",    "lookup",    "cut",   "join",
    "extreme", "bounds", "divide",  "divide", "round",   "magnitude", "smooth"};
static_assert(std::size(kSizes) == static_cast<size_t>(Sizes::kSmooth) + 1);

constexpr absl::string_view kSigns[] = {kMissing,   "positive", "operands", "operands", "operands",
                                        "operands", "operands", "operands", "operands", "places"};
static_assert(std::size(kSigns) == static_cast<size_t>(Sign::kPlacesAlone) + 1);

std::string Text(absl::string_view text) { return std::string(text); }

// Internal ops are made after the certificate, which asks for the facts of padding.
bool IsCertified(const OpRow& row) { return !row.Has(kInternal); }

std::string Padding(const OpRow& row) {
  if (!IsCertified(row)) return "";
  return row.axis == ops::UnknownAxis ? kMissing : "rule";
}

std::string ByTrait(const OpRow& row) {
  if (row.Has(kView)) return "view";
  if (row.Has(kElementwise)) return "elements";
  return row.Has(kShapeOnly) ? "shape" : "";
}

std::string Batching(const OpRow& row, const OpFacts& facts) {
  const std::string trait = ByTrait(row);
  return trait.empty() ? Text(kRowRules[static_cast<size_t>(facts.rows)]) : trait;
}

// Segments are made by packing.
std::string Packing(const OpRow& row, const OpFacts& facts) {
  if (facts.Is(kOfSegments) && facts.packing == PackRule::kNone) return "";
  const std::string trait = ByTrait(row);
  return trait.empty() ? Text(kPackRules[static_cast<size_t>(facts.packing)]) : trait;
}

std::string SizesOf(const OpRow& row, const OpFacts& facts) {
  if (!IsCertified(row)) return "";
  if (facts.sizes == Sizes::kUnknown && facts.growth != Growth::kUnknown) return "fixed";
  return Text(kSizes[static_cast<size_t>(facts.sizes)]);
}

std::string Bounds(const OpRow& row, const OpFacts& facts) {
  if (!IsCertified(row)) return "";
  return Text(kSigns[static_cast<size_t>(facts.sign)]);
}

std::string Kernel(const OpRow& row) {
  if (row.Has(kView)) return "view";
  if (row.Has(kShapeOnly) && !row.Has(kNoFold)) return "folded";
  if (row.Has(kDataDependent)) return "";
  return HasCpuKernels(row.name) ? "fast" : kMissing;
}

// Takes facts of the op that passes make of it: that it lacks them itself costs nothing.
void TakeFrom(const OpRow& row, std::vector<std::string>& facts) {
  const OpRow* other = FindOp(FactsOf(row).becomes);
  if (other == nullptr) return;
  const std::string as = absl::StrCat("as ", other->name.substr(other->name.rfind('.') + 1));
  // Padding is asked of the model as it is in the file.
  for (const size_t column : {1, 2, 5}) {
    if (facts[column] == kMissing) facts[column] = as;
  }
}

}  // namespace

const std::vector<OpColumn>& OpColumns() {
  static const auto* const columns = new std::vector<OpColumn>{
      {"padding", "requests run at exact sizes along an axis that such a node looks along"},
      {"batch", "the rows of a batch that no request fills are computed too"},
      {"packing", "models with it are padded, not packed"},
      {"sizes", "a model that computes with sizes by it runs at exact sizes"},
      {"bounds", "its numbers may be anything, for masks and lookups that depend on them"},
      {"kernel", "the reference kernel runs it"}};
  return *columns;
}

std::vector<OpMatrixRow> OpMatrix() {
  std::vector<OpMatrixRow> matrix;
  for (const OpRow& row : AllOps()) {
    const OpFacts& facts = FactsOf(row);
    OpMatrixRow& one = matrix.emplace_back(OpMatrixRow{.op = row.name});
    one.facts = {Padding(row),        Batching(row, facts), Packing(row, facts),
                 SizesOf(row, facts), Bounds(row, facts),   Kernel(row)};
    TakeFrom(row, one.facts);
  }
  return matrix;
}

std::string OpMatrixText() {
  const std::vector<OpMatrixRow> matrix = OpMatrix();
  size_t widest = 0;
  for (const OpMatrixRow& row : matrix) widest = std::max(widest, row.op.size());
  const int width = static_cast<int>(widest);
  constexpr int kColumnWidth = 14;
  std::string text = absl::StrFormat("%-*s", width + 2, "op");
  for (const OpColumn& column : OpColumns()) {
    absl::StrAppendFormat(&text, "%-*s", kColumnWidth, column.name);
  }
  const auto end_line = [&] {
    while (text.back() == ' ') text.pop_back();
    text += '\n';
  };
  end_line();
  for (const OpMatrixRow& row : matrix) {
    absl::StrAppendFormat(&text, "%-*s", width + 2, row.op);
    for (const std::string& fact : row.facts) {
      absl::StrAppendFormat(&text, "%-*s", kColumnWidth, fact);
    }
    end_line();
  }
  for (size_t column = 0; column < OpColumns().size(); ++column) {
    std::vector<absl::string_view> missing;
    size_t asked = 0;
    for (const OpMatrixRow& row : matrix) {
      if (!row.facts[column].empty()) ++asked;
      if (row.facts[column] == kMissing) missing.push_back(row.op);
    }
    absl::StrAppend(&text, "\nmissing ", OpColumns()[column].name, ": ", missing.size(), " of ",
                    asked, "; then ", OpColumns()[column].without, "\n");
    if (!missing.empty()) absl::StrAppend(&text, "  ", absl::StrJoin(missing, ", "), "\n");
  }
  return text;
}

}  // namespace reprise::cli
