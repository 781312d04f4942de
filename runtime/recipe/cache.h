// RecipeCache: the recipes that are in memory, by key.
//
// A lookup never blocks on a compile. `GetOrCapture` runs `capture` at most once for a key however
// many threads ask; the others wait for that one result, and all of them see its error if it
// fails. A failure is forgotten at once: the next asker tries again.
//
// Ownership: recipes are shared; evicting one leaves it alive until its last replay ends.
// Threads:   all methods are safe from any thread; callbacks run without the lock.
// Errors:    those of `capture`; RESOURCE_EXHAUSTED if one recipe exceeds a byte limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/recipe/ready_index.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

class RecipeCache {
 public:
  // Why a recipe leaves: room is needed, in the whole cache or within its owner's limit; its owner
  // has too many exact ones; it is not wanted any more.
  enum class Why { kMemory, kOwnMemory, kExactLimit, kRetired, kUnload };
  struct Eviction {
    int64_t at_ns = 0;  // time on the cache's clock
    Why why = Why::kMemory;
  };
  // The owner of a captured recipe: its callbacks report evictions and sizes. Compared by address.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnEvicted(const Recipe& recipe, Why why) = 0;
    virtual void OnCacheSize(int64_t recipes, int64_t bytes) = 0;
    // Tells that another recipe of the same key has its place.
    virtual void OnReplaced(const Recipe& recipe) {}
    virtual int64_t max_exact() const = 0;
    // Returns the limit on its recipes together; 0: no limit of its own.
    virtual int64_t max_bytes() const { return 0; }
  };

  enum class Outcome { kHit, kCaptured, kWaited };
  struct Result {
    std::shared_ptr<const Recipe> recipe;
    Outcome outcome = Outcome::kHit;
  };

  // `clock` outlives the cache.
  RecipeCache(int64_t max_bytes, const Clock& clock) : max_bytes_(max_bytes), clock_(clock) {}

  // Returns the recipe if it is ready; marks it as used.
  std::shared_ptr<const Recipe> Find(const RecipeKey& key);

  // Returns whether the recipe is ready. Does not mark it as used.
  bool Contains(const RecipeKey& key) const;

  // Returns the recipe, or captures it. `exact`: counts against the owner's max_exact, beyond which
  // its least recently used goes.
  absl::StatusOr<Result> GetOrCapture(
      const RecipeKey& key, const std::shared_ptr<Owner>& owner, bool exact,
      const std::function<absl::StatusOr<std::shared_ptr<const Recipe>>()>& capture);

  // Returns the recipe if it is ready. Does not mark it as used.
  std::shared_ptr<const Recipe> Peek(const RecipeKey& key) const;

  // Puts `better` in the place of `recipe`, which has the same key: later lookups get that one, and
  // replays that hold the other go on with it. Returns false, and changes nothing, where `recipe`
  // is not in the cache (any more), or `better` would not fit into the memory.
  bool Replace(const Recipe& recipe, std::shared_ptr<const Recipe> better);

  // Returns the number of exact recipes of `owner` that are in memory.
  int64_t NumExact(const Owner& owner) const;

  // Returns the last eviction of a recipe of this key, if there was one (remembered for the last
  // 4096).
  std::optional<Eviction> EvictionOf(const RecipeKey& key) const;

  // Returns the recipes of a graph that are in memory, for all owners. Lives as long as it is held.
  std::shared_ptr<const ReadyIndex> IndexOf(const GraphFingerprint& graph);

  // Makes recipes of `owner` that `wanted` denies the first to go when room is needed. Recipes that
  // it denied at the last call already, and that were not used since, go now.
  void Retire(const std::shared_ptr<Owner>& owner,
              const std::function<bool(const Recipe&)>& wanted);

  // Forgets the owner. Its recipes go to its successor `heir`, which wants the same ones; they are
  // removed where that is null.
  void RemoveOwner(const std::shared_ptr<Owner>& owner,
                   const std::shared_ptr<Owner>& heir = nullptr);

  struct Entry {
    std::shared_ptr<const Recipe> recipe;
    std::shared_ptr<Owner> owner;
    bool exact = false;
    int64_t uses = 0;
    bool retired = false;  // and not used since
    // Shown to people: kept with the entry, never compared.
    std::chrono::system_clock::time_point created;
    std::chrono::system_clock::time_point last_used;
    // The recipe's size, kept since each capture would walk the launches of all recipes for it.
    int64_t bytes = 0;
  };
  std::vector<Entry> Entries() const;
  int64_t bytes() const;

 private:
  struct Flight;
  struct KeyHash {
    size_t operator()(const RecipeKey& key) const { return key.hash; }
  };
  using Lru = std::list<Entry>;  // most recently used first

  // An entry that left the cache; its owner is told without the lock.
  struct Gone {
    Entry entry;
    Why why;
  };
  ReadyIndex& IndexLocked(uint64_t graph_hash) REQUIRES(mutex_);
  // Forgets the indexes of graphs of which no recipe is left, and which have no holder.
  void DropUnusedIndexes() REQUIRES(mutex_);
  // Makes it the most recently used.
  void Touch(Lru::iterator it) REQUIRES(mutex_);
  void Insert(Entry entry, std::vector<Gone>& gone) REQUIRES(mutex_);
  // Returns the entry that goes when room is needed, of `owner` or of all owners where it is null;
  // there is one.
  Lru::iterator Victim(const Owner* owner) REQUIRES(mutex_);
  int64_t BytesOf(const Owner& owner) const REQUIRES(mutex_);
  void Remove(Lru::iterator it, Why why, std::vector<Gone>& gone) REQUIRES(mutex_);
  void Tell(const std::vector<Gone>& gone, const std::shared_ptr<Owner>& owner);

  // Constant after construction.
  const int64_t max_bytes_;
  const Clock& clock_;
  // Guarded.
  mutable Mutex mutex_;
  Lru lru_ GUARDED_BY(mutex_);
  HashMap<RecipeKey, Lru::iterator, KeyHash> entries_ GUARDED_BY(mutex_);
  HashMap<RecipeKey, std::shared_ptr<Flight>, KeyHash> flights_ GUARDED_BY(mutex_);
  HashMap<uint64_t, std::shared_ptr<ReadyIndex>> ready_ GUARDED_BY(mutex_);
  int64_t bytes_ GUARDED_BY(mutex_) = 0;
  std::list<uint64_t> evicted_order_ GUARDED_BY(mutex_);
  HashMap<uint64_t, Eviction> evicted_ GUARDED_BY(mutex_);
};

}  // namespace reprise
