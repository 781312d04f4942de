#include "runtime/recipe/ready_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// Returns the elements along the axes that cost time, and along the batch.
std::pair<double, int64_t> CostOf(const Binding& binding, const std::string& batch_symbol) {
  double product = 1;
  int64_t batch = 1;
  for (const auto& [symbol, size] : binding.axes) {
    if (symbol == batch_symbol) {
      batch = size;
    } else {
      product *= static_cast<double>(size);
    }
  }
  return {product, batch};
}

}  // namespace

void ReadyIndex::Add(std::shared_ptr<const Recipe> recipe) {
  MutexLock lock(mutex_);
  auto changed = std::make_shared<RecipeList>(*recipes_);
  changed->push_back(std::move(recipe));
  recipes_ = std::move(changed);
}

void ReadyIndex::Remove(const Recipe& recipe) {
  MutexLock lock(mutex_);
  auto changed = std::make_shared<RecipeList>(*recipes_);
  changed->erase(std::remove_if(changed->begin(), changed->end(),
                                [&](const auto& one) { return one.get() == &recipe; }),
                 changed->end());
  recipes_ = std::move(changed);
}

bool CanServe(const RecipeKey& have, const RecipeKey& want, const std::set<std::string>& paddable) {
  const auto& ours = have.binding.axes;
  const auto& asked = want.binding.axes;
  if (ours.size() != asked.size()) return false;
  for (auto a = ours.begin(), b = asked.begin(); a != ours.end(); ++a, ++b) {
    if (a->first != b->first || a->second < b->second) return false;
    if (a->second != b->second && !paddable.contains(a->first)) return false;
  }
  return have.binding.shape_inputs == want.binding.shape_inputs && have.packing == want.packing &&
         have.precision == want.precision && have.device == want.device &&
         have.compiler_version == want.compiler_version && have.graph.hash == want.graph.hash &&
         (have.graph.text == want.graph.text || *have.graph.text == *want.graph.text);
}

std::shared_ptr<const Recipe> SmallestThatServes(const RecipeList& ready, const RecipeKey& want,
                                                 const std::set<std::string>& paddable,
                                                 const std::string& batch_symbol) {
  std::shared_ptr<const Recipe> best;
  std::pair<double, int64_t> least = {std::numeric_limits<double>::infinity(), 0};
  for (const std::shared_ptr<const Recipe>& recipe : ready) {
    if (!recipe->note.bucketed || !CanServe(recipe->key, want, paddable)) continue;
    const auto cost = CostOf(recipe->key.binding, batch_symbol);
    if (best != nullptr && cost >= least) continue;
    best = recipe;
    least = cost;
  }
  return best;
}

}  // namespace reprise
