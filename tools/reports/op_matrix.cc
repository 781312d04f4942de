#include "tools/reports/op_matrix.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/device/cpu/kernel_list.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"

namespace reprise::cli {
namespace {

constexpr char kMissing[] = "-";

// How the map of an op (ops/maps) tells the rows of a batch apart.
struct MapWord {
  MapRule map;
  absl::string_view word;
};
constexpr MapWord kMapWords[] = {{ops::ElementwiseMap, "elements"},
                                 {ops::FirstMap, "elements"},
                                 {ops::ViewMap, "view"},
                                 {ops::QuantisationMap, "scale"},
                                 {ops::ExpandMap, "copies"},
                                 {ops::TileMap, "copies"},
                                 {ops::MatMulMap, "product"},
                                 {ops::GemmMap, "product"},
                                 {ops::LinearMap, "product"},
                                 {ops::MatMulIntegerMap, "product"},
                                 {ops::QLinearMatMulMap, "product"},
                                 {ops::IntegerLinearMap, "product"},
                                 {ops::EinsumMap, "product"},
                                 {ops::LastDimProductMap, "product"},
                                 {ops::DetMap, "last dims"},
                                 {ops::StftMap, "window"},
                                 {ops::DistancesMap, "product"},
                                 {ops::TransposeMap, "transpose"},
                                 {ops::ConcatMap, "concat"},
                                 {ops::SplitMap, "cut"},
                                 {ops::SliceMap, "cut"},
                                 {ops::PadMap, "pads"},
                                 {ops::TriluMap, "last dims"},
                                 {ops::PlanesMap, "first dim"},
                                 {ops::ReverseSequenceMap, "axis"},
                                 {ops::GatherMap, "lookup"},
                                 {ops::GatherElementsMap, "lookup"},
                                 {ops::GatherNdMap, "lookup"},
                                 {ops::ScatterElementsMap, "lookup"},
                                 {ops::ScatterNdMap, "lookup"},
                                 {ops::OneHotMap, "lookup"},
                                 {ops::EmbeddingSumMap, "lookup"},
                                 {ops::AppendRowsMap, "append"},
                                 {ops::ReduceMap, "reduce"},
                                 {ops::ArgMap, "reduce"},
                                 {ops::TopKMap, "axis"},
                                 {ops::CumulativeMap, "scan"},
                                 {ops::SoftmaxMap, "axis"},
                                 {ops::LastDimsNormMap, "axis"},
                                 {ops::ChannelNormMap, "axis"},
                                 {ops::BatchNormMap, "elements"},
                                 {ops::LocalNormMap, "window"},
                                 {ops::ConvMap, "window"},
                                 {ops::ConvTransposeMap, "window"},
                                 {ops::FusedConvMap, "first dim"},
                                 {ops::IntegerConvMap, "first dim"},
                                 {ops::DeformConvMap, "first dim"},
                                 {ops::PoolMap, "window"},
                                 {ops::GlobalPoolMap, "reduce"},
                                 {ops::RecurrentMap, "scan"},
                                 {ops::ResizeMap, "window"},
                                 {ops::GridSampleMap, "lookup"},
                                 {ops::RoiAlignMap, "lookup"},
                                 {ops::RotaryMap, "rotary"},
                                 {ops::RowsMap, "first dim"},
                                 {ops::AttentionMap, "attention"},
                                 {ops::RelativeAttentionMap, "attention"},
                                 {ops::SegmentAttentionMap, "segments"},
                                 {ops::SegmentMap, "segments"},
                                 {ops::SegmentSpreadMap, "segments"},
                                 {ops::BatchOfFirstMap, "first dim"},
                                 {ops::BatchOfAllMap, "first dim"},
                                 {ops::LiveFillMap, "first dim"},
                                 {ops::LiveCompactMap, "first dim"}};

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

// The form of the op that knows where each request ends; none: it looks along no dim.
constexpr absl::string_view kBorders[] = {"",        "window",  "window",  "window",  "sum",
                                          "mean",    "extreme", "extreme", "extreme", "norm",
                                          "softmax", "product", "keys",    "lengths"};
static_assert(std::size(kBorders) == static_cast<size_t>(Border::kLengths) + 1);

std::string Text(absl::string_view text) { return std::string(text); }

// Internal ops are made after the certificate, which asks for the facts of padding.
bool IsCertified(const OpRow& row) { return !row.Has(kInternal); }

std::string ByTrait(const OpRow& row) {
  if (row.Has(kView)) return "view";
  if (row.Has(kElementwise)) return "elements";
  return row.Has(kShapeOnly) ? "shape" : "";
}

std::string Padding(const OpRow& row) {
  if (!IsCertified(row)) return "";
  if (row.axis == ops::UnknownAxis) return kMissing;
  const absl::string_view border = kBorders[static_cast<size_t>(FactsOf(row).border)];
  if (!border.empty()) return absl::StrCat("live ", border);
  std::string trait = ByTrait(row);
  if (!trait.empty()) return trait;
  if (row.axis == ops::MapAxis) return "map";
  return row.axis == ops::KnownAxis ? "shape" : "rule";
}

std::string Batching(const OpRow& row, const OpFacts& facts) {
  std::string trait = ByTrait(row);
  if (!trait.empty()) return trait;
  if (facts.map == nullptr) return kMissing;
  const auto* const found =
      absl::c_find_if(kMapWords, [&](const MapWord& one) { return one.map == facts.map; });
  return found == std::end(kMapWords) ? "map" : Text(found->word);
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
