// EagerCache: the preparations of eager runs, by their keys, so that a shape that comes again is
// prepared once.
//
// An eager run takes the device's fast kernels at exactly the shapes that arrive, as a capture
// does, but nothing is primed, timed, stored or counted as a recipe. It keeps whole models and
// sections after cuts that run without a capture, and single nodes at cuts, each under the key that
// its recipe would have. The least recently used go first, beyond a byte limit that is separate
// from the recipes': shapes that come once never drive out recipes.
//
// Ownership: shared; an evicted entry lives until its last run ends. Threads: all methods from any.
// Errors: any of `prepare`. An entry that is larger than the limit runs, and is not kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/engine/model/model_owner.h"
#include "runtime/recipe/cache.h"

namespace reprise {

// The share of a model in the cache, and how often it was of use.
struct EagerUse {
  int64_t ops = 0;
  int64_t bytes = 0;
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t evictions = 0;
};

class EagerCache {
 public:
  // The part of one model. A model holds one while it is loaded.
  class Share final : public RecipeCache::Owner {
   public:
    explicit Share(std::shared_ptr<ModelOwner> owner) : owner_(std::move(owner)) {}

    EagerUse use() const;

    void OnEvicted(const Recipe& recipe, RecipeCache::Why why) override;
    void OnCacheSize(int64_t ops, int64_t bytes) override;
    int64_t max_exact() const override { return INT64_MAX; }

   private:
    friend class EagerCache;
    void Count(bool hit);

    const std::shared_ptr<ModelOwner> owner_;
    std::atomic<int64_t> ops_{0};
    std::atomic<int64_t> bytes_{0};
    std::atomic<int64_t> hits_{0};
    std::atomic<int64_t> misses_{0};
    std::atomic<int64_t> evictions_{0};
  };

  // `clock` outlives the cache.
  EagerCache(int64_t max_bytes, const Clock& clock) : cache_(max_bytes, clock) {}

  // Returns the recipe that `key` names, prepared now if it is not there. When several threads ask
  // for a key at once, one of them prepares it.
  absl::StatusOr<std::shared_ptr<const Recipe>> GetOrPrepare(
      const RecipeKey& key, const std::shared_ptr<Share>& share,
      const std::function<absl::StatusOr<std::unique_ptr<Recipe>>()>& prepare);

  // Removes a share when its model is unloaded.
  void Remove(const std::shared_ptr<Share>& share) { cache_.RemoveOwner(share); }

  int64_t bytes() const { return cache_.bytes(); }
  // Returns the recipes that are kept now, for people.
  std::vector<RecipeCache::Entry> Entries() const { return cache_.Entries(); }

 private:
  RecipeCache cache_;
};

}  // namespace reprise
