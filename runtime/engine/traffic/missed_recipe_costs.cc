#include "runtime/engine/traffic/missed_recipe_costs.h"

namespace reprise {
namespace {

// Lengths that were seen once are forgotten when there are this many.
constexpr size_t kMost = 4096;

}  // namespace

bool MissedRecipeCosts::Note(const RecipeKey& key, int64_t lost_ns, int64_t capture_ns,
                             int64_t min_times) {
  MutexLock lock(mutex_);
  if (costs_.size() >= kMost) {
    std::erase_if(costs_, [](const auto& one) { return !one.second.asked; });
  }
  Cost& cost = costs_[key.hash];
  ++cost.times;
  if (lost_ns > 0) cost.lost_ns += lost_ns;
  if (cost.asked || cost.times < min_times) return false;
  cost.asked = cost.lost_ns > 0 && cost.lost_ns >= capture_ns / kExpectedRepeats;
  return cost.asked;
}

void MissedRecipeCosts::Forget(const RecipeKey& key) {
  MutexLock lock(mutex_);
  costs_.erase(key.hash);
}

}  // namespace reprise
