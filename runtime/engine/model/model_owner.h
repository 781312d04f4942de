// ModelOwner: the parts that outlive a request of a model: its parameters and its observer.
//
// The recipe cache identifies a model by its owner, which it notifies of evictions.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/traffic/exact_cache_admission.h"
#include "runtime/engine/traffic/new_shapes.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/cache.h"

namespace reprise {

class ModelOwner final : public RecipeCache::Owner {
 public:
  // `max_bytes` of recipes; 0: no limit of the model's own.
  ModelOwner(std::unique_ptr<ParameterStore> parameters, int64_t max_exact, int64_t max_bytes)
      : parameters_(std::move(parameters)), max_exact_(max_exact), max_bytes_(max_bytes) {}

  // Sets the observer, once, before the first recipe is captured through this owner.
  void SetObserver(std::unique_ptr<ModelObserver> observer) { observer_ = std::move(observer); }

  // Returns true for the first caller: the model has captured nothing yet.
  bool BeginFirstCapture() { return !has_captured_.exchange(true); }

  // Returns the nanoseconds that a capture of the model takes once its weights are packed.
  int64_t capture_ns() const { return capture_ns_; }
  void SetCaptureNs(int64_t ns) { capture_ns_ = ns; }

  // Counts a recipe that was wanted again right after it was evicted. Returns the number of these
  // since it was last told, where that is a minute ago; else nothing is to be told.
  std::optional<int64_t> CountThrash(int64_t now_ns) {
    constexpr int64_t kTellEveryNs = int64_t{60} * 1'000'000'000;
    ++thrashed_;
    int64_t told = thrash_told_ns_;
    if (told != kNeverTold && now_ns - told < kTellEveryNs) return std::nullopt;
    if (!thrash_told_ns_.compare_exchange_strong(told, now_ns)) return std::nullopt;
    return thrashed_.exchange(0);
  }

  // Returns whether a recipe of this key was wanted before, as far back as is remembered.
  bool WantedBefore(uint64_t key_hash) {
    MutexLock lock(mutex_);
    if (!wanted_.insert(key_hash).second) return true;
    wanted_order_.push_back(key_hash);
    if (wanted_order_.size() > kMostWanted) {
      wanted_.erase(wanted_order_.front());
      wanted_order_.pop_front();
    }
    return false;
  }

  // Returns whether an exact recipe may be captured in the place of another.
  bool AdmitExactRecipe() { return exact_admission_.Spend(capture_ns_); }
  void CreditReplay(int64_t replay_ns) { exact_admission_.Earn(replay_ns, capture_ns_); }

  ParameterStore& parameters() const { return *parameters_; }
  ModelObserver& observer() const { return *observer_; }
  NewShapes& new_shapes() { return new_shapes_; }

  void OnEvicted(const Recipe& recipe, RecipeCache::Why why) override {
    parameters_->Forget(recipe);
    observer_->On(RecipeEviction{why == RecipeCache::Why::kExactLimit ? EvictionReason::kExactLimit
                                 : why == RecipeCache::Why::kRetired  ? EvictionReason::kRetired
                                 : why == RecipeCache::Why::kUnload   ? EvictionReason::kUnload
                                                                      : EvictionReason::kMemory});
  }
  void OnReplaced(const Recipe& recipe) override { parameters_->Forget(recipe); }
  void OnCacheSize(int64_t recipes, int64_t bytes) override {
    observer_->On(CacheSize{recipes, bytes});
  }
  int64_t max_exact() const override { return max_exact_; }
  int64_t max_bytes() const override { return max_bytes_; }

 private:
  static constexpr int64_t kNeverTold = -1;
  static constexpr size_t kMostWanted = 4096;

  const std::unique_ptr<ParameterStore> parameters_;
  const int64_t max_exact_;
  const int64_t max_bytes_;
  std::unique_ptr<ModelObserver> observer_;
  std::atomic<bool> has_captured_{false};
  std::atomic<int64_t> thrashed_{0};
  std::atomic<int64_t> thrash_told_ns_{kNeverTold};
  std::atomic<int64_t> capture_ns_{30'000'000};  // a guess until one was captured
  ExactCacheAdmission exact_admission_;
  NewShapes new_shapes_;
  Mutex mutex_;
  HashSet<uint64_t> wanted_ GUARDED_BY(mutex_);
  std::deque<uint64_t> wanted_order_ GUARDED_BY(mutex_);
};

}  // namespace reprise
