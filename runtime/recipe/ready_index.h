// ReadyIndex: the recipes of one graph that are in memory; a miss asks it whether one of them is
// large enough to serve.
//
// The cache keeps it; the planning of batches reads a snapshot, which later changes do not touch.
//
// Ownership: shared by the cache and by the models of the graph. Threads: all methods from any.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

using RecipeList = std::vector<std::shared_ptr<const Recipe>>;

class ReadyIndex {
 public:
  std::shared_ptr<const RecipeList> Snapshot() const {
    MutexLock lock(mutex_);
    return recipes_;
  }

  void Add(std::shared_ptr<const Recipe> recipe);
  void Remove(const Recipe& recipe);

 private:
  mutable Mutex mutex_;
  // Replaced, never changed.
  std::shared_ptr<const RecipeList> recipes_ GUARDED_BY(mutex_) = std::make_shared<RecipeList>();
};

// Returns whether a recipe of `have` gives the answers that `want` asks for: the keys are equal but
// for the sizes of the axes in `paddable` (symbols), which are at least the sizes of `want`.
bool CanServe(const RecipeKey& have, const RecipeKey& want, const std::set<std::string>& paddable);

// Returns the recipe of a bucket in `ready` that can serve `want` and, among those, computes the
// fewest elements: the smallest product of all axes but `batch_symbol` (rows that no request fills
// cost nothing), then the smallest batch. Null if there is none. Recipes of exact shapes beyond the
// buckets are left out: padding was not checked at their sizes.
std::shared_ptr<const Recipe> SmallestThatServes(const RecipeList& ready, const RecipeKey& want,
                                                 const std::set<std::string>& paddable,
                                                 const std::string& batch_symbol);

}  // namespace reprise
