#include "tools/reports/check_report.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"
#include "runtime/base/format_text.h"
#include "runtime/base/saturating.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/tail.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/paged/paged_form.h"

namespace reprise::cli {
namespace {

constexpr auto kRight = Table::Align::kRight;
// Sizes that stand for all of an axis without buckets.
constexpr int64_t kExactBatch[] = {1};
constexpr int64_t kExactLengths[] = {16, 128, 512};
// The bucket whose kernels are shown: one row, the largest length up to this.
constexpr int64_t kShownLength = 128;
// Recipes of a padded model that are compiled to be shown.
constexpr double kMostCompiled = 512;

struct Compiled {
  std::string bucket;
  std::vector<int64_t> sizes;            // one an axis; packed: tokens and segments
  std::unique_ptr<const Recipe> recipe;  // nullptr: refused
  absl::Status refused;
};

std::string DimsText(const std::vector<Dim>& dims) {
  return absl::StrCat(
      "[",
      absl::StrJoin(dims, ", ",
                    [](std::string* out, const Dim& dim) {
                      absl::StrAppend(out, dim.is_constant() ? absl::StrCat(dim.size) : dim.symbol);
                    }),
      "]");
}

std::string SignatureText(const Model& model) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {""}});
  for (const ModelIo& input : model.inputs()) {
    table.AddRow({absl::StrCat("input ", input.name), std::string(TypeText(input)),
                  DimsText(input.dims), input.optional ? "may be left out" : ""});
  }
  for (const ModelIo& output : model.outputs()) {
    table.AddRow({absl::StrCat("output ", output.name), std::string(TypeText(output)),
                  DimsText(output.dims), ""});
  }
  return table.Text();
}

const AxisBuckets* BucketsOf(const BucketPolicy& policy, const ModelAxis& axis) {
  if (!axis.certificate.certified) return nullptr;
  for (const AxisBuckets& buckets : policy.axes) {
    if (buckets.axis == axis.label && !buckets.sizes.empty()) return &buckets;
  }
  return nullptr;
}

std::string AxesText(const Model& model) {
  if (model.axes().empty()) return "no axis: every request has the same shape\n";
  Table table({{"axis"}, {"symbol"}, {"buckets"}, {"padding"}, {"certificate"}});
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  for (const ModelAxis& axis : model.axes()) {
    const AxisBuckets* buckets = BucketsOf(*policy, axis);
    const AxisCertificate& certificate = axis.certificate;
    std::string words = certificate.reason;
    if (certificate.certified && !certificate.guards.empty()) {
      absl::StrAppend(&words, words.empty() ? "" : "; ",
                      "must be filled: ", absl::StrJoin(certificate.guards, ", "));
    }
    table.AddRow({axis.label, axis.symbol,
                  model.packing() != nullptr ? "packed"
                  : buckets == nullptr       ? "exact sizes"
                                             : absl::StrJoin(buckets->sizes, ","),
                  certificate.certified ? "certified" : "never", words});
  }
  return table.Text();
}

// How requests of different sizes share a replay; nothing where no one would think of packing.
std::string PackingText(const Model& model) {
  const Packing* const packing = model.packing();
  if (packing == nullptr) {
    return model.packing_refusal().empty()
               ? ""
               : absl::StrCat("requests are padded, not packed: ", model.packing_refusal(), "\n\n");
  }
  return absl::StrCat(
      "requests are packed: they lie one after another in a replay, and no padding is computed\n",
      model.packs_whole_requests() ? absl::StrCat("  ", model.packing_reason(), "\n") : "",
      "  numbers of tokens that recipes are compiled for: ", absl::StrJoin(packing->buckets(), ","),
      "\n  requests longer than ", packing->longest(), " run at their exact sizes\n\n");
}

// Whether the server can keep the cache of a decoder; nothing for a model without one.
std::string PagingText(const Model& model) {
  std::vector<std::string> outputs;
  for (const ModelIo& output : model.outputs()) outputs.push_back(output.name);
  const absl::StatusOr<PagedForm> form =
      MakePagedForm(Engine::SymbolicGraph(model, /*packed=*/false), outputs, {});
  if (absl::IsNotFound(form.status())) return "";
  if (!form.ok()) {
    return absl::StrCat(
        "clients carry the cache of this decoder, and it makes no tokens by itself: ",
        form.status().message(), "\n\n");
  }
  return absl::StrCat("makes tokens: the server keeps ", form->caches.size(),
                      " caches in pages of ", form->page_floats * int64_t{sizeof(float)},
                      " bytes, for up to ", form->context, " positions of a sequence\n\n");
}

// Every number of tokens.
std::vector<Compiled> CompilePacked(const Engine& engine, const Model& model) {
  std::vector<Compiled> all;
  for (const int64_t tokens : model.packing()->buckets()) {
    Compiled& compiled = all.emplace_back();
    compiled.bucket = PackedLabel(tokens);
    compiled.sizes = {tokens, model.packing()->SegmentsOf(tokens)};
    auto recipe = engine.CompileAt(model, compiled.sizes, /*packed=*/true);
    if (recipe.ok()) {
      compiled.recipe = *std::move(recipe);
    } else {
      compiled.refused = recipe.status();
    }
  }
  return all;
}

// Sizes that each axis of a padded model runs at: its buckets, or where it has none sizes that
// stand for all.
std::vector<std::vector<int64_t>> SizesByAxis(const Model& model, const BucketPolicy& policy) {
  std::vector<std::vector<int64_t>> sizes;
  for (const ModelAxis& axis : model.axes()) {
    if (const AxisBuckets* buckets = BucketsOf(policy, axis)) {
      sizes.push_back(buckets->sizes);
    } else if (axis.is_batch) {
      sizes.emplace_back(std::begin(kExactBatch), std::end(kExactBatch));
    } else {
      // Positions of a picture's parts may fix its side, and recordings want some samples.
      std::set<int64_t> taken;
      for (const int64_t length : kExactLengths) taken.insert(std::max(length, axis.smallest));
      sizes.emplace_back(taken.begin(), taken.end());
    }
  }
  return sizes;
}

double Combinations(const std::vector<std::vector<int64_t>>& choices) {
  double count = 1;
  for (const std::vector<int64_t>& axis : choices) count *= static_cast<double>(axis.size());
  return count;
}

// All that `choices` combine to; where that is more than kMostCompiled, those in which one axis
// moves and the others stand at their smallest.
std::vector<std::vector<int64_t>> Combine(const std::vector<std::vector<int64_t>>& choices) {
  std::vector<int64_t> smallest;
  for (const std::vector<int64_t>& axis : choices) smallest.push_back(axis.front());
  const bool whole = Combinations(choices) <= kMostCompiled;
  std::vector<std::vector<int64_t>> all = {smallest};
  for (size_t i = 0; i < choices.size(); ++i) {
    const size_t heads = whole ? all.size() : 1;
    for (size_t head = 0; head < heads; ++head) {
      for (size_t c = 1; c < choices[i].size(); ++c) {
        all.push_back(all[head]);
        all.back()[i] = choices[i][c];
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// The label of the recipe at these sizes; nullopt where the limit on elements forbids it.
std::optional<std::string> LabelAt(const Model& model, const BucketPolicy& policy,
                                   const std::vector<int64_t>& sizes) {
  AxisSizes bucketed;
  bool exact = model.axes().empty();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    if (BucketsOf(policy, axis) == nullptr) {
      exact = true;
    } else {
      bucketed[axis.label] = sizes[i];
    }
  }
  if (!policy.WithinLimit(bucketed)) return std::nullopt;
  return exact ? "exact" : BucketLabel(bucketed, policy.batch_axis);
}

// Where CompileAll leaves most out.
std::string LeftOutText(const Model& model) {
  if (model.packing() != nullptr) return "";
  const double count = Combinations(SizesByAxis(model, *model.buckets()));
  if (count <= kMostCompiled) return "";
  return FormatText(
      "the sizes of %d axes combine to %.3g recipes: shown are those in which one axis moves and "
      "the others stand at their smallest\n",
      static_cast<int>(model.axes().size()), count);
}

// The recipes of a padded model.
std::vector<Compiled> CompileAll(const Engine& engine, const Model& model) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  std::vector<Compiled> all;
  for (std::vector<int64_t>& sizes : Combine(SizesByAxis(model, *policy))) {
    const std::optional<std::string> label = LabelAt(model, *policy, sizes);
    if (!label.has_value()) continue;
    Compiled& compiled = all.emplace_back();
    compiled.bucket = *label;
    auto recipe = engine.CompileAt(model, sizes);
    compiled.sizes = std::move(sizes);
    if (recipe.ok()) {
      compiled.recipe = *std::move(recipe);
    } else {
      compiled.refused = recipe.status();
    }
  }
  return all;
}

std::string BindingText(const Model& model, const std::vector<int64_t>& sizes) {
  if (model.packing() != nullptr) return absl::StrCat("tokens=", sizes[0], ",segments=", sizes[1]);
  std::vector<std::string> parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    parts.push_back(absl::StrCat(model.axes()[i].label, "=", sizes[i]));
  }
  return parts.empty() ? "-" : absl::StrJoin(parts, ",");
}

// The smallest batch, and of its lengths (packed: tokens) the largest up to kShownLength.
const Compiled* Shown(const Model& model, const std::vector<Compiled>& all) {
  const Compiled* best = nullptr;
  auto order = [&](const Compiled& compiled) {
    int64_t batch = 1, length = 1;
    if (model.packing() != nullptr) length = compiled.sizes[0];
    for (size_t i = 0; model.packing() == nullptr && i < compiled.sizes.size(); ++i) {
      int64_t& size = model.axes()[i].is_batch ? batch : length;
      size = SaturatingProduct(size, compiled.sizes[i]);
    }
    return std::make_tuple(batch, length > kShownLength ? length : kShownLength - length);
  };
  for (const Compiled& compiled : all) {
    if (compiled.recipe == nullptr) continue;
    if (best == nullptr || order(compiled) < order(*best)) best = &compiled;
  }
  return best;
}

std::string KernelsText(const Model& model, const Compiled& shown) {
  struct Row {
    int launches = 0;
    double flops = 0;
    const Launch* first = nullptr;
    std::vector<std::string> nodes;
  };
  std::map<std::string, Row> rows;
  int reference = 0;
  for (const Launch& launch : shown.recipe->launches) {
    Row& row = rows[launch.kernel];
    ++row.launches;
    row.flops += launch.work.flops;
    row.first = &launch;
    row.nodes.push_back(launch.node);
    reference += launch.reference;
  }
  Table table({{"kernel"}, {"kind"}, {"launches", kRight}, {"MFLOP", kRight}, {"nodes"}});
  for (const auto& [kernel, row] : rows) {
    const char* kind = row.first->reference ? "reference"
                       : row.first->foreign ? "fast, foreign library"
                                            : "fast";
    table.AddRow({kernel, kind, absl::StrCat(row.launches), Fixed(row.flops / 1e6, 1),
                  Shorten(absl::StrJoin(row.nodes, ", "), 60)});
  }
  const int launches = static_cast<int>(shown.recipe->launches.size());
  return absl::StrCat("kernels at ", BindingText(model, shown.sizes), ": ", launches, " launches, ",
                      launches - reference, " fast, ", reference, " reference\n", table.Text());
}

std::string MemoryText(const Model& model, const std::vector<Compiled>& all, int streams) {
  Table table({{"bucket"},
               {"binding"},
               {"launches", kRight},
               {"replay", kRight},
               {"recipe", kRight},
               {""}});
  std::set<std::string> seen;
  uint64_t prepared = 0, largest = 0, recipes = 0;
  for (const Compiled& compiled : all) {
    const std::string binding = BindingText(model, compiled.sizes);
    if (compiled.recipe == nullptr) {
      table.AddRow({compiled.bucket, binding, "-", "-", "-",
                    absl::StrCat("refused: ", std::string(compiled.refused.message()))});
      continue;
    }
    const Recipe& recipe = *compiled.recipe;
    for (const ParameterExprPtr& expression : recipe.parameters) {
      if (expression->is_leaf() || !seen.insert(expression->text()).second) continue;
      prepared += NumElements(expression->shape()) * DTypeSize(expression->dtype());
    }
    largest = std::max<uint64_t>(largest, recipe.frame_bytes());
    recipes += recipe.memory_bytes();
    table.AddRow({compiled.bucket, binding, absl::StrCat(recipe.launches.size()),
                  Bytes(recipe.frame_bytes()), Bytes(recipe.memory_bytes()), ""});
  }
  const uint64_t weights = model.parameter_bytes();
  return absl::StrCat("memory: a replay's inputs, outputs and arena; a recipe's own\n",
                      table.Text(), "\nweights ", Bytes(weights), " as stored, ", Bytes(prepared),
                      " prepared for kernels, once a version\n", "at most ",
                      Bytes(weights + prepared + recipes + streams * largest), " with ", streams,
                      streams == 1 ? " stream" : " streams", " and every recipe above in memory\n");
}

std::string CutsText(const Model& model) {
  if (model.tail() == nullptr) return "";
  std::string text =
      "cut where data decides shapes; the kernels and memory below are those of what "
      "comes before\n";
  for (const Cut& cut : model.tail()->cuts()) {
    absl::StrAppend(&text, "  ", cut.op, " '", cut.node, "': ", cut.why, "\n");
  }
  return absl::StrCat(text, "\n");
}

}  // namespace

absl::StatusOr<std::string> CheckReport(const Engine& engine, const Model& model, int streams) {
  std::string text = absl::StrCat(SignatureText(model), "\n", AxesText(model), "\n",
                                  PackingText(model), PagingText(model), CutsText(model));
  if (model.has_shape_inputs()) {
    absl::StrAppend(&text,
                    "an input decides shapes: kernels and memory follow its value, which "
                    "only a request has\nweights ",
                    Bytes(model.parameter_bytes()), " as stored\n");
    return text;
  }
  const std::vector<Compiled> all =
      model.packing() != nullptr ? CompilePacked(engine, model) : CompileAll(engine, model);
  const Compiled* shown = Shown(model, all);
  // Sizes that go together are not always those that are tried: a request has them.
  if (shown == nullptr && absl::IsInvalidArgument(all.front().refused)) {
    absl::StrAppend(&text, "none of the sizes that were tried go together (",
                    std::string(all.front().refused.message()),
                    "): kernels and memory are those of a request\nweights ",
                    Bytes(model.parameter_bytes()), " as stored\n");
    return text;
  }
  if (shown == nullptr) return all.front().refused;
  absl::StrAppend(&text, KernelsText(model, *shown), "\n", LeftOutText(model),
                  MemoryText(model, all, streams));
  return text;
}

}  // namespace reprise::cli
