#include "runtime/engine/capture/suggestion.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/engine/load/policy_maker.h"
#include "runtime/engine/model/model.h"

namespace reprise {
namespace {

std::string Line(absl::string_view parameter, absl::string_view value) {
  return absl::StrCat("reprise.", parameter, ": \"", value, "\"");
}

int64_t Megabytes(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

// Suggests twice as much room as there was.
std::string RoomFor(const Model& model, RecipeCache::Why why, int64_t max_cache_bytes) {
  switch (why) {
    case RecipeCache::Why::kExactLimit:
      return Line("max_exact", absl::StrCat(2 * model.options().max_exact));
    case RecipeCache::Why::kOwnMemory:
      return Line("max_recipe_mb", absl::StrCat(2 * Megabytes(model.options().max_recipe_bytes)));
    case RecipeCache::Why::kMemory:
      return absl::StrCat("--recipe-cache-memory-mb ", 2 * Megabytes(max_cache_bytes));
    case RecipeCache::Why::kRetired:
    case RecipeCache::Why::kUnload:
      break;
  }
  // The learnt set dropped this bucket, and traffic came back to it.
  return Line("bucket_policy", "off");
}

// Returns whether the configuration warms `label` up.
bool IsWarmedUp(const Model& model, const std::string& label) {
  const std::vector<std::string>& labels = model.options().warmup;
  return std::any_of(labels.begin(), labels.end(),
                     [&](const std::string& one) { return one == "all" || one == label; });
}

// Returns `label` added to the labels that are warmed up already.
std::string WarmupWith(const Model& model, const std::string& label) {
  if (IsWarmedUp(model, label)) return "none: reprise.warmup names it, and had not reached it yet";
  std::vector<std::string> labels = model.options().warmup;
  labels.push_back(label);
  return Line("warmup", absl::StrJoin(labels, ","));
}

std::string BucketsParameter(const ModelAxis& axis) {
  return axis.label == "batch" || axis.label == "sequence" ? absl::StrCat(axis.label, "_buckets")
                                                           : absl::StrCat("buckets.", axis.label);
}

// Returns the bucket that would hold a shape whose axes may all be padded, where it is too large
// for the present buckets.
std::string BucketFor(const Model& model, const CaptureTarget& target) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  std::vector<std::string> lines;
  AxisSizes bucket;
  int64_t tokens = 1;
  for (const ModelAxis& axis : model.axes()) {
    const int64_t size = target.key.binding.axes.at(axis.symbol);
    int64_t fitted = policy->Fit(axis.label, size).value_or(0);
    if (fitted == 0) {
      for (const AxisBuckets& buckets : policy->axes) {
        if (buckets.axis != axis.label || buckets.sizes.empty()) continue;
        fitted = buckets.sizes.back();
        while (fitted < size) fitted *= 2;
        // A table of positions may end between two buckets.
        if (!PolicyMaker::TakesBucket(*model.program().graph, model.axes(), axis.label, fitted)
                 .ok())
          fitted = size;
        lines.push_back(Line(BucketsParameter(axis),
                             absl::StrCat(absl::StrJoin(buckets.sizes, ","), ",", fitted)));
      }
    }
    bucket[axis.label] = std::max(fitted, size);
    tokens *= bucket[axis.label];
  }
  if (tokens > model.options().max_batch_tokens) {
    lines.push_back(Line("max_batch_tokens", absl::StrCat(tokens)));
  }
  if (lines.empty()) return "";
  const std::string label = BucketLabel(bucket, policy->batch_axis);
  if (!IsWarmedUp(model, label)) lines.push_back(WarmupWith(model, label));
  return absl::StrJoin(lines, " and ");
}

// Returns what makes a bucket ready before it is asked for. One that opened by itself is none of
// all buckets, which a warm-up may name, before a list has it.
std::string ForBucket(const Model& model, const CaptureTarget& target) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  std::vector<std::string> lines;
  for (const ModelAxis& axis : model.axes()) {
    const auto size = target.key.binding.axes.find(axis.symbol);
    if (size == target.key.binding.axes.end()) continue;
    for (const AxisBuckets& buckets : policy->axes) {
      if (buckets.axis != axis.label || !policy->IsOpened(axis.label, size->second)) continue;
      lines.push_back(Line(BucketsParameter(axis),
                           absl::StrCat(absl::StrJoin(buckets.sizes, ","), ",", size->second)));
    }
  }
  const bool all = absl::c_linear_search(model.options().warmup, "all");
  return lines.empty() || !all ? WarmupWith(model, target.bucket) : absl::StrJoin(lines, " and ");
}

std::string ForExactShape(const Model& model, const CaptureTarget& target) {
  if (target.variant != nullptr) {
    return "none: the request overrides an initialiser, or has sizes that the axes do not have";
  }
  if (!target.key.binding.shape_inputs.empty()) {
    return absl::StrCat("none: input '", target.key.binding.shape_inputs.begin()->first,
                        "' decides a shape, so each of its values has a recipe of its own");
  }
  if (model.axes().empty()) return WarmupWith(model, "all");
  if (model.packs_whole_requests()) {
    const Packing& packing = *model.packing();
    return absl::StrCat(
        "none: no axis may be padded, and a request is packed as a whole, with rows of at most ",
        packing.longest(), " tokens, ", packing.buckets().back(), " in all");
  }
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    const AxisCertificate certificate = model.CertificateOf(i);
    if (certificate.certified) continue;
    return model.options().no_padding.contains(axis.label)
               ? absl::StrCat("none: ", Line(absl::StrCat("padding.", axis.label), "off"),
                              " gives every size a recipe of its own")
               : absl::StrCat("none: padding along axis ", axis.label,
                              " is not proved safe, so every size has a recipe of its own");
  }
  const std::string line = BucketFor(model, target);
  if (!line.empty()) return line;
  return "none: its sizes may not be padded, see `reprise explain MODEL`";
}

}  // namespace

std::string SuggestionFor(const Model& model, const CaptureTarget& target, CompileReason reason,
                          const std::optional<RecipeCache::Eviction>& eviction,
                          int64_t max_cache_bytes) {
  if (reason == CompileReason::kWarmup || reason == CompileReason::kBucketChange) return "";
  if (reason == CompileReason::kEvicted && eviction.has_value()) {
    return RoomFor(model, eviction->why, max_cache_bytes);
  }
  if (!target.section.empty()) return "none: sizes after a cut depend on the data";
  return target.exact || model.axes().empty() ? ForExactShape(model, target)
                                              : ForBucket(model, target);
}

}  // namespace reprise
