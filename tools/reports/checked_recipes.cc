#include "tools/reports/checked_recipes.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/saturating.h"

namespace reprise::cli {
namespace {

// Sizes that stand for all of an axis without buckets.
constexpr int64_t kExactBatch[] = {1};
constexpr int64_t kExactLengths[] = {16, 128, 512};
// The bucket whose kernels are shown: one row, the largest length up to this.
constexpr int64_t kShownLength = 128;
// Recipes of a padded model that are compiled to be shown.
constexpr double kMostCompiled = 512;

// Compiles for every number of tokens.
std::vector<CheckedRecipe> CompilePacked(const Engine& engine, const Model& model) {
  std::vector<CheckedRecipe> all;
  for (const int64_t tokens : model.packing()->buckets()) {
    CheckedRecipe& compiled = all.emplace_back();
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
      // Positions of a picture's parts may fix its side, and recordings need some samples.
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

// Returns whether all combinations are compiled. Most of a decoder's requests run on recipes of
// steps, whose sizes are none of its axes: a few of the others show what they cost.
bool CombinesAll(const Model& model, const std::vector<std::vector<int64_t>>& choices) {
  return Combinations(choices) <= kMostCompiled && !PagesOf(model, 0).ok();
}

// Returns all that `choices` combine to; unless `whole`, those in which one axis varies and the
// others are at their smallest.
std::vector<std::vector<int64_t>> Combine(const std::vector<std::vector<int64_t>>& choices,
                                          bool whole) {
  std::vector<int64_t> smallest;
  for (const std::vector<int64_t>& axis : choices) smallest.push_back(axis.front());
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

// Returns the label of the recipe at these sizes; nullopt where the limit on elements forbids it.
std::optional<std::string> LabelAt(const Model& model, const BucketPolicy& policy,
                                   const std::vector<int64_t>& sizes) {
  AxisSizes bucketed;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    if (BucketsOf(policy, axis) != nullptr) bucketed[axis.label] = sizes[i];
  }
  if (!policy.WithinLimit(bucketed)) return std::nullopt;
  return RecipeLabel(bucketed, model.axes().size(), policy.batch_axis);
}

// Returns the recipes of a padded model.
std::vector<CheckedRecipe> CompileAll(const Engine& engine, const Model& model) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  std::vector<CheckedRecipe> all;
  const std::vector<std::vector<int64_t>> choices = SizesByAxis(model, *policy);
  for (std::vector<int64_t>& sizes : Combine(choices, CombinesAll(model, choices))) {
    const std::optional<std::string> label = LabelAt(model, *policy, sizes);
    if (!label.has_value()) continue;
    CheckedRecipe& compiled = all.emplace_back();
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

}  // namespace

std::string CheckedRecipe::BindingText(const Model& model) const {
  if (model.packing() != nullptr) return absl::StrCat("tokens=", sizes[0], ",segments=", sizes[1]);
  std::vector<std::string> parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    parts.push_back(absl::StrCat(model.axes()[i].label, "=", sizes[i]));
  }
  return parts.empty() ? "-" : absl::StrJoin(parts, ",");
}

const AxisBuckets* BucketsOf(const BucketPolicy& policy, const ModelAxis& axis) {
  if (!axis.certificate.certified) return nullptr;
  for (const AxisBuckets& buckets : policy.axes) {
    if (buckets.axis == axis.label && !buckets.sizes.empty()) return &buckets;
  }
  return nullptr;
}

absl::StatusOr<PagedForm> PagesOf(const Model& model, int64_t stated_context) {
  std::vector<std::string> outputs;
  for (const ModelIo& output : model.outputs()) outputs.push_back(output.name);
  return MakePagedForm(Engine::SymbolicGraph(model, /*packed=*/false), outputs,
                       {.stated_context = stated_context});
}

std::vector<CheckedRecipe> CompileBuckets(const Engine& engine, const Model& model) {
  return model.packing() != nullptr ? CompilePacked(engine, model) : CompileAll(engine, model);
}

std::string LeftOutText(const Model& model) {
  if (model.packing() != nullptr) return "";
  const std::vector<std::vector<int64_t>> choices = SizesByAxis(model, *model.buckets());
  if (CombinesAll(model, choices)) return "";
  return FormatText(
      "the sizes of %d axes combine to %.3g recipes: shown are those in which one axis varies and "
      "the others are at their smallest\n",
      static_cast<int>(model.axes().size()), Combinations(choices));
}

const CheckedRecipe* ShownOf(const Model& model, const std::vector<CheckedRecipe>& all) {
  const CheckedRecipe* best = nullptr;
  auto order = [&](const CheckedRecipe& compiled) {
    int64_t batch = 1, length = 1;
    if (model.packing() != nullptr) length = compiled.sizes[0];
    for (size_t i = 0; model.packing() == nullptr && i < compiled.sizes.size(); ++i) {
      int64_t& size = model.axes()[i].is_batch ? batch : length;
      size = SaturatingProduct(size, compiled.sizes[i]);
    }
    return std::make_tuple(batch, length > kShownLength ? length : kShownLength - length);
  };
  for (const CheckedRecipe& compiled : all) {
    if (compiled.recipe == nullptr) continue;
    if (best == nullptr || order(compiled) < order(*best)) best = &compiled;
  }
  return best;
}

}  // namespace reprise::cli
