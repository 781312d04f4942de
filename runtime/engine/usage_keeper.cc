#include "runtime/engine/usage_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/engine/model/model.h"
#include "runtime/recipe/store.h"
#include "runtime/recipe/stored_recipe.h"

namespace reprise {
namespace {

// Recipes that a start makes ready because an earlier one used them.
constexpr size_t kMostUsedBefore = 64;

// Returns the sizes with which Engine::CaptureAhead would capture the recipe; empty where it would
// not.
AxisSizes SizesOf(const Model& model, const RecipeKey& key) {
  if (key.packing == kPacked) return {{kTokensAxis, PackedSizesOf(key).tokens}};
  if (!key.binding.shape_inputs.empty() || model.packing() != nullptr) return {};
  AxisSizes sizes;
  for (const ModelAxis& axis : model.axes()) {
    const auto it = key.binding.axes.find(axis.symbol);
    if (it == key.binding.axes.end() || it->second < 1) return {};
    sizes[axis.label] = it->second;
  }
  // A variant with other axes has no such sizes.
  return key.binding.axes.size() == sizes.size() ? sizes : AxisSizes();
}

bool IsWanted(const Model& model, const AxisSizes& sizes) {
  if (model.packing() != nullptr) return sizes.size() == 1 && sizes.count(kTokensAxis) == 1;
  if (sizes.size() != model.axes().size()) return false;
  const std::shared_ptr<const BucketPolicy> buckets = model.buckets();
  for (const ModelAxis& axis : model.axes()) {
    const auto it = sizes.find(axis.label);
    if (it == sizes.end()) return false;
    if (model.certified().contains(axis.label) &&
        buckets->Fit(axis.label, it->second).value_or(0) != it->second) {
      return false;
    }
  }
  return true;
}

int64_t UnixSeconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

void UsageKeeper::Save(const Model& model, When when) {
  if (options_.store == nullptr || !options_.store->writable()) return;
  ModelUsage usage;
  uint64_t before = 0, more = 0;
  bool news = false;
  {
    MutexLock lock(mutex_);
    Uses& saved = saved_[&model];
    Uses now = saved;
    for (const RecipeCache::Entry& entry : cache_.Entries()) {
      if (entry.owner != model.owner()) continue;
      const RecipeKey& key = entry.recipe->key;
      const uint64_t name = RecordNameOf(key, model.id().name).key;
      // The capture itself does not count as a use.
      const auto uses = static_cast<uint64_t>(std::max<int64_t>(entry.uses - 1, 0));
      // A recipe that was evicted in between is counted from the beginning.
      const uint64_t known = saved.count(name) != 0 && saved[name] <= uses ? saved[name] : 0;
      if (uses == known) continue;
      news = news || known == 0;
      before += known;
      more += uses - known;
      now[name] = uses;
      usage.recipes.push_back({.key = name,
                               .uses = uses - known,
                               .last_used_unix_s = UnixSeconds(entry.last_used),
                               .sizes = SizesOf(model, key)});
    }
    if (usage.recipes.empty() || (when == When::kWorthwhile && !news && more < before)) return;
    saved = std::move(now);
  }
  usage.axes = model.learner().axes();
  usage.learnt = model.learner().Learnt();
  // Small to store and slow to find out again: it is evicted last when the folder is full.
  constexpr int64_t kRebuildNs = int64_t{60} * 1'000'000'000;
  // The store has noted the error.
  options_.store
      ->Update(UsageNameOf(model.id(), model.fingerprint()), kRebuildNs,
               [&](const std::string& stored) {
                 return AddUsage(stored, model.id(), model.fingerprint(),
                                 options_.device->fingerprint(), usage,
                                 UnixSeconds(std::chrono::system_clock::now()));
               })
      .IgnoreError();
}

void UsageKeeper::Forget(const Model& model) {
  MutexLock lock(mutex_);
  saved_.erase(&model);
}

std::vector<AxisSizes> UsedBefore(const Model& model) {
  std::vector<AxisSizes> used;
  for (const RecipeUse& use : model.usage().recipes) {
    if (use.uses > 0 && used.size() < kMostUsedBefore && IsWanted(model, use.sizes)) {
      used.push_back(use.sizes);
    }
  }
  return used;
}

}  // namespace reprise
