#include "runtime/engine/model/eager_cache.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {

EagerUse EagerCache::Share::use() const {
  return {.ops = ops_, .bytes = bytes_, .hits = hits_, .misses = misses_, .evictions = evictions_};
}

void EagerCache::Share::OnEvicted(const Recipe& recipe, RecipeCache::Why) {
  owner_->parameters().Forget(recipe);
  ++evictions_;
  owner_->observer().On(EagerEviction{});
}

void EagerCache::Share::OnCacheSize(int64_t ops, int64_t bytes) {
  ops_ = ops;
  bytes_ = bytes;
  owner_->observer().On(EagerCacheSize{ops, bytes});
}

void EagerCache::Share::Count(bool hit) {
  ++(hit ? hits_ : misses_);
  owner_->observer().On(EagerCacheLookup{hit});
}

absl::StatusOr<std::shared_ptr<const Recipe>> EagerCache::GetOrPrepare(
    const RecipeKey& key, const std::shared_ptr<Share>& share,
    const std::function<absl::StatusOr<std::unique_ptr<Recipe>>()>& prepare) {
  if (std::shared_ptr<const Recipe> known = cache_.Find(key)) {
    share->Count(/*hit=*/true);
    return known;
  }
  share->Count(/*hit=*/false);
  const auto within_memory = [&] {
    return WithinMemory([&] { return absl::StrCat("preparing ", key.binding.ToString()); },
                        prepare);
  };
  bool asked = false;
  std::shared_ptr<const Recipe> prepared;
  const auto result = cache_.GetOrCapture(key, share, /*exact=*/false,
                                          [&]() -> absl::StatusOr<std::shared_ptr<const Recipe>> {
                                            asked = true;
                                            ASSIGN_OR_RETURN(prepared, within_memory());
                                            return prepared;
                                          });
  if (result.ok()) return result->recipe;
  // Too large to be kept: the thread that prepared it has it for this run, a waiter prepares
  // another.
  if (prepared != nullptr) return prepared;
  if (!asked) return within_memory();
  return result.status();
}

}  // namespace reprise
