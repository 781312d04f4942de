#include "runtime/recipe/cache.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

constexpr size_t kRememberedEvictions = 4096;

}  // namespace

// One capture that several threads may wait for.
struct RecipeCache::Flight {
  CondVar done;
  bool landed = false;  // guarded by the cache's mutex, as is the result
  absl::StatusOr<std::shared_ptr<const Recipe>> result =
      absl::InternalError("the awaited capture ended without an answer");
};

std::shared_ptr<const Recipe> RecipeCache::Find(const RecipeKey& key) {
  MutexLock lock(mutex_);
  auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  Touch(it->second);
  return it->second->recipe;
}

bool RecipeCache::Contains(const RecipeKey& key) const {
  MutexLock lock(mutex_);
  return entries_.contains(key);
}

std::shared_ptr<const Recipe> RecipeCache::Peek(const RecipeKey& key) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second->recipe;
}

bool RecipeCache::Replace(const Recipe& recipe, std::shared_ptr<const Recipe> better) {
  std::shared_ptr<Owner> owner;
  {
    MutexLock lock(mutex_);
    const auto it = entries_.find(recipe.key);
    if (it == entries_.end() || it->second->recipe.get() != &recipe) return false;
    Entry& entry = *it->second;
    const int64_t more = better->memory_bytes() - entry.bytes;
    const int64_t most = entry.owner->max_bytes();
    if (bytes_ + more > max_bytes_ || (most > 0 && BytesOf(*entry.owner) + more > most)) {
      return false;
    }
    bytes_ += more;
    entry.bytes += more;
    ReadyIndex& index = IndexLocked(recipe.key.graph.hash);
    index.Add(better);
    index.Remove(recipe);
    owner = entry.owner;
    entry.recipe.swap(better);
  }
  // Called without the lock; `better` is now the old one, which lives until here.
  owner->OnReplaced(*better);
  Tell({}, owner);
  return true;
}

void RecipeCache::Touch(Lru::iterator it) {
  lru_.splice(lru_.begin(), lru_, it);
  ++it->uses;
  it->retired = false;
  it->last_used = std::chrono::system_clock::now();
}

absl::StatusOr<RecipeCache::Result> RecipeCache::GetOrCapture(
    const RecipeKey& key, const std::shared_ptr<Owner>& owner, bool exact,
    const std::function<absl::StatusOr<std::shared_ptr<const Recipe>>()>& capture) {
  std::shared_ptr<Flight> flight;
  {
    MutexLock lock(mutex_);
    if (auto it = entries_.find(key); it != entries_.end()) {
      Touch(it->second);
      return Result{it->second->recipe, Outcome::kHit};
    }
    if (auto it = flights_.find(key); it != flights_.end()) {
      flight = it->second;
      while (!flight->landed) flight->done.Wait(mutex_);
      if (!flight->result.ok()) return flight->result.status();
      return Result{*flight->result, Outcome::kWaited};
    }
    flight = std::make_shared<Flight>();
    flights_[key] = flight;
  }

  // Runs however the capture ends: an exception propagates to the capturing thread, and no thread
  // waits for ever.
  absl::Cleanup land = [&] {
    MutexLock lock(mutex_);
    flight->landed = true;
    flights_.erase(key);
    flight->done.NotifyAll();
  };
  absl::StatusOr<std::shared_ptr<const Recipe>> result = capture();
  if (result.ok() && (*result)->memory_bytes() > max_bytes_) {
    result = absl::InvalidArgumentError(
        absl::StrCat("recipe ", key.hex(), " (", (*result)->SizesText(), ") takes ",
                     (*result)->memory_bytes(), " bytes; the recipe cache holds ", max_bytes_));
  }
  if (const int64_t most = owner->max_bytes();
      result.ok() && most > 0 && (*result)->memory_bytes() > most) {
    result = absl::InvalidArgumentError(
        absl::StrCat("recipe ", key.hex(), " (", (*result)->SizesText(), ") takes ",
                     (*result)->memory_bytes(), " bytes; reprise.max_recipe_mb allows ", most));
  }
  std::vector<Gone> gone;
  {
    MutexLock lock(mutex_);
    const auto now = std::chrono::system_clock::now();
    if (result.ok()) Insert({*result, owner, exact, /*uses=*/1, /*retired=*/false, now, now}, gone);
    flight->result = result;
  }
  std::move(land).Invoke();
  Tell(gone, owner);
  if (!result.ok()) return result.status();
  return Result{*std::move(result), Outcome::kCaptured};
}

void RecipeCache::Insert(Entry entry, std::vector<Gone>& gone) {
  const int64_t bytes = entry.bytes = entry.recipe->memory_bytes();
  if (const int64_t most = entry.owner->max_bytes(); most > 0) {
    for (int64_t held = BytesOf(*entry.owner); held > 0 && held + bytes > most;
         held = BytesOf(*entry.owner)) {
      Remove(Victim(entry.owner.get()), Why::kOwnMemory, gone);
    }
  }
  while (!lru_.empty() && bytes_ + bytes > max_bytes_) Remove(Victim(nullptr), Why::kMemory, gone);
  if (entry.exact) {
    int64_t exact = 1;
    Lru::iterator oldest = lru_.end();
    for (auto it = lru_.begin(); it != lru_.end(); ++it) {
      if (!it->exact || it->owner != entry.owner) continue;
      ++exact;
      oldest = it;
    }
    if (exact > entry.owner->max_exact() && oldest != lru_.end()) {
      Remove(oldest, Why::kExactLimit, gone);
    }
  }
  bytes_ += bytes;
  IndexLocked(entry.recipe->key.graph.hash).Add(entry.recipe);
  lru_.push_front(std::move(entry));
  entries_[lru_.front().recipe->key] = lru_.begin();
}

int64_t RecipeCache::NumExact(const Owner& owner) const {
  MutexLock lock(mutex_);
  return absl::c_count_if(
      lru_, [&](const Entry& entry) { return entry.exact && entry.owner.get() == &owner; });
}

RecipeCache::Lru::iterator RecipeCache::Victim(const Owner* owner) {
  // Among retired recipes first, then among the others, the least recently used.
  auto oldest = lru_.end();
  for (auto it = lru_.begin(); it != lru_.end(); ++it) {
    if (owner != nullptr && it->owner.get() != owner) continue;
    if (oldest == lru_.end() || it->retired || !oldest->retired) oldest = it;
  }
  return oldest;
}

int64_t RecipeCache::BytesOf(const Owner& owner) const {
  int64_t bytes = 0;
  for (const Entry& entry : lru_) {
    if (entry.owner.get() == &owner) bytes += entry.bytes;
  }
  return bytes;
}

void RecipeCache::Retire(const std::shared_ptr<Owner>& owner,
                         const std::function<bool(const Recipe&)>& wanted) {
  std::vector<Gone> gone;
  {
    MutexLock lock(mutex_);
    for (auto it = lru_.begin(); it != lru_.end();) {
      const auto entry = it++;
      if (entry->owner != owner) continue;
      const bool again = entry->retired;
      entry->retired = !wanted(*entry->recipe);
      if (again && entry->retired) Remove(entry, Why::kRetired, gone);
    }
  }
  Tell(gone, owner);
}

void RecipeCache::Remove(Lru::iterator it, Why why, std::vector<Gone>& gone) {
  const RecipeKey& key = it->recipe->key;
  if (evicted_.insert_or_assign(key.hash, Eviction{clock_.NowNs(), why}).second) {
    evicted_order_.push_back(key.hash);
  }
  if (evicted_order_.size() > kRememberedEvictions) {
    evicted_.erase(evicted_order_.front());
    evicted_order_.pop_front();
  }
  entries_.erase(key);
  IndexLocked(key.graph.hash).Remove(*it->recipe);
  bytes_ -= it->bytes;
  gone.push_back({std::move(*it), why});
  lru_.erase(it);
}

void RecipeCache::Tell(const std::vector<Gone>& gone, const std::shared_ptr<Owner>& owner) {
  std::set<std::shared_ptr<Owner>> changed = {owner};
  for (const Gone& one : gone) {
    one.entry.owner->OnEvicted(*one.entry.recipe, one.why);
    changed.insert(one.entry.owner);
  }
  for (const std::shared_ptr<Owner>& one : changed) {
    int64_t recipes = 0, bytes = 0;
    {
      MutexLock lock(mutex_);
      for (const Entry& entry : lru_) {
        if (entry.owner != one) continue;
        ++recipes;
        bytes += entry.bytes;
      }
    }
    one->OnCacheSize(recipes, bytes);
  }
}

std::optional<RecipeCache::Eviction> RecipeCache::EvictionOf(const RecipeKey& key) const {
  MutexLock lock(mutex_);
  const auto it = evicted_.find(key.hash);
  if (it == evicted_.end()) return std::nullopt;
  return it->second;
}

ReadyIndex& RecipeCache::IndexLocked(uint64_t graph_hash) {
  std::shared_ptr<ReadyIndex>& index = ready_[graph_hash];
  if (index == nullptr) index = std::make_shared<ReadyIndex>();
  return *index;
}

std::shared_ptr<const ReadyIndex> RecipeCache::IndexOf(const GraphFingerprint& graph) {
  MutexLock lock(mutex_);
  DropUnusedIndexes();
  IndexLocked(graph.hash);
  return ready_[graph.hash];
}

void RecipeCache::DropUnusedIndexes() {
  std::erase_if(ready_, [](const auto& one) {
    return one.second.use_count() == 1 && one.second->Snapshot()->empty();
  });
}

void RecipeCache::RemoveOwner(const std::shared_ptr<Owner>& owner,
                              const std::shared_ptr<Owner>& heir) {
  std::vector<Gone> gone;
  {
    MutexLock lock(mutex_);
    for (auto it = lru_.begin(); it != lru_.end();) {
      const auto here = it++;
      if (here->owner != owner) continue;
      if (heir != nullptr) {
        here->owner = heir;
        continue;
      }
      bytes_ -= here->bytes;
      IndexLocked(here->recipe->key.graph.hash).Remove(*here->recipe);
      entries_.erase(here->recipe->key);
      gone.push_back({std::move(*here), Why::kUnload});
      lru_.erase(here);
    }
    DropUnusedIndexes();
  }
  Tell(gone, owner);
  if (heir != nullptr) Tell({}, heir);
}

std::vector<RecipeCache::Entry> RecipeCache::Entries() const {
  MutexLock lock(mutex_);
  return {lru_.begin(), lru_.end()};
}

int64_t RecipeCache::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace reprise
