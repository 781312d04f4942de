#include "runtime/engine/traffic/missed_recipe_costs.h"

namespace reprise {
namespace {

// Lengths that were seen once are forgotten when there are this many.
constexpr size_t kMaxWishes = 4096;

}  // namespace

bool Wishes::Note(const RecipeKey& key, int64_t lost_ns, int64_t capture_ns, int64_t min_times) {
  MutexLock lock(mutex_);
  if (wishes_.size() >= kMaxWishes) {
    std::erase_if(wishes_, [](const auto& one) { return !one.second.asked; });
  }
  Wish& wish = wishes_[key.hash];
  ++wish.times;
  if (lost_ns > 0) wish.lost_ns += lost_ns;
  if (wish.asked || wish.times < min_times) return false;
  wish.asked = wish.lost_ns > 0 && wish.lost_ns >= capture_ns / kExpectedRepeats;
  return wish.asked;
}

void Wishes::Forget(const RecipeKey& key) {
  MutexLock lock(mutex_);
  wishes_.erase(key.hash);
}

}  // namespace reprise
