#include "tools/serve/pooled_usage.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "proto/recipe.pb.h"

namespace reprise::cli {
namespace {

using recipe::v1::Learnt;
using recipe::v1::StoredUsage;

double WeightOf(const Learnt& learnt) {
  double weight = 0;
  for (const auto* half : {&learnt.first_half(), &learnt.second_half()}) {
    for (const auto& one : *half) weight += one.weight();
  }
  return weight;
}

// Returns whether both are of one configuration: the axes are the same, and began with the same
// buckets.
bool MayJoin(const Learnt& a, const Learnt& b) {
  return std::equal(a.axes().begin(), a.axes().end(), b.axes().begin(), b.axes().end(),
                    [](const auto& one, const auto& other) {
                      return one.label() == other.label() &&
                             std::equal(one.start().begin(), one.start().end(),
                                        other.start().begin(), other.start().end());
                    });
}

using Seen = google::protobuf::RepeatedPtrField<recipe::v1::SeenSizes>;

void AddSeen(const Seen& from, Seen& to) {
  std::map<std::vector<int64_t>, double> weights;
  for (const Seen* half : {static_cast<const Seen*>(&to), &from}) {
    for (const auto& one : *half) {
      weights[{one.sizes().begin(), one.sizes().end()}] += one.weight();
    }
  }
  to.Clear();
  for (const auto& [sizes, weight] : weights) {
    auto& one = *to.Add();
    one.mutable_sizes()->Add(sizes.begin(), sizes.end());
    one.set_weight(weight);
  }
}

void AddBatches(const Learnt& from, Learnt& to) {
  std::map<int64_t, double> weights;
  for (const Learnt* one : {static_cast<const Learnt*>(&to), &from}) {
    for (const auto& batch : one->batches()) weights[batch.rows()] += batch.weight();
  }
  to.clear_batches();
  for (const auto& [rows, weight] : weights) {
    auto& batch = *to.add_batches();
    batch.set_rows(rows);
    batch.set_weight(weight);
  }
}

// Adds up samples, each of which is sums over replays of one row size.
void AddCosts(const Learnt& from, Learnt& to) {
  if (from.device() != to.device()) return;
  std::map<int64_t, recipe::v1::CostSample> sums;
  for (const Learnt* one : {static_cast<const Learnt*>(&to), &from}) {
    for (const auto& cost : one->costs()) {
      recipe::v1::CostSample& sum = sums[cost.row_size()];
      sum.set_row_size(cost.row_size());
      sum.set_weight(sum.weight() + cost.weight());
      sum.set_rows(sum.rows() + cost.rows());
      sum.set_rows2(sum.rows2() + cost.rows2());
      sum.set_ns(sum.ns() + cost.ns());
      sum.set_rows_ns(sum.rows_ns() + cost.rows_ns());
    }
  }
  to.clear_costs();
  for (auto& [row_size, sum] : sums) *to.add_costs() = std::move(sum);
}

}  // namespace

std::string PoolUsage(const std::vector<std::string>& payloads) {
  std::vector<StoredUsage> all;
  for (const std::string& payload : payloads) {
    StoredUsage usage;
    if (usage.ParseFromString(payload)) all.push_back(std::move(usage));
  }
  if (all.empty()) return "";
  // The one that saw most comes first: its buckets in force stay in force.
  std::stable_sort(all.begin(), all.end(), [](const StoredUsage& a, const StoredUsage& b) {
    return WeightOf(a.learnt()) > WeightOf(b.learnt());
  });
  StoredUsage pooled = std::move(all.front());
  std::map<uint64_t, recipe::v1::RecipeUse> uses;
  const auto add_uses = [&uses](const StoredUsage& from) {
    for (const auto& one : from.recipes()) {
      const auto [known, is_new] = uses.emplace(one.key(), one);
      if (is_new) continue;
      recipe::v1::RecipeUse& use = known->second;
      use.set_uses(use.uses() + one.uses());
      use.set_last_used_unix_s(std::max(use.last_used_unix_s(), one.last_used_unix_s()));
    }
  };
  add_uses(pooled);
  for (auto it = std::next(all.begin()); it != all.end(); ++it) {
    if (it->graph() != pooled.graph()) continue;
    add_uses(*it);
    pooled.set_updated_unix_s(std::max(pooled.updated_unix_s(), it->updated_unix_s()));
    if (!MayJoin(pooled.learnt(), it->learnt())) continue;
    Learnt& learnt = *pooled.mutable_learnt();
    AddSeen(it->learnt().first_half(), *learnt.mutable_first_half());
    AddSeen(it->learnt().second_half(), *learnt.mutable_second_half());
    AddBatches(it->learnt(), learnt);
    AddCosts(it->learnt(), learnt);
  }
  pooled.clear_recipes();
  std::vector<recipe::v1::RecipeUse> order;
  order.reserve(uses.size());
  for (auto& [key, use] : uses) order.push_back(std::move(use));
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.uses() > b.uses(); });
  for (recipe::v1::RecipeUse& use : order) *pooled.add_recipes() = std::move(use);
  return pooled.SerializeAsString();
}

}  // namespace reprise::cli
