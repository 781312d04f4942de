#include "runtime/engine/traffic/model_usage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/store.h"

namespace reprise {
namespace {

// Recipes that are remembered, and for how long after their last use.
constexpr size_t kMostRecipes = 256;
constexpr int64_t kForgottenAfterS = int64_t{30} * 24 * 3600;

void AddSizes(const std::vector<WeightedSizes>& from,
              google::protobuf::RepeatedPtrField<recipe::v1::SeenSizes>& to) {
  for (const WeightedSizes& one : from) {
    auto* seen = to.Add();
    for (const int64_t size : one.sizes) seen->add_sizes(size);
    seen->set_weight(one.weight);
  }
}

std::vector<WeightedSizes> SizesOf(
    const google::protobuf::RepeatedPtrField<recipe::v1::SeenSizes>& from) {
  std::vector<WeightedSizes> sizes;
  for (const auto& one : from) {
    sizes.push_back({{one.sizes().begin(), one.sizes().end()}, one.weight()});
  }
  return sizes;
}

recipe::v1::Learnt LearntMessage(const ModelUsage& usage, const std::string& device) {
  recipe::v1::Learnt message;
  const LearntBuckets& learnt = usage.learnt;
  message.set_device(device);
  for (size_t i = 0; i < usage.axes.size(); ++i) {
    auto* axis = message.add_axes();
    axis->set_label(usage.axes[i]);
    for (const int64_t size : learnt.start[i]) axis->add_start(size);
    for (const int64_t size : learnt.boundaries[i]) axis->add_boundaries(size);
  }
  message.set_expected_waste(learnt.expected_waste);
  AddSizes(learnt.halves[0], *message.mutable_first_half());
  AddSizes(learnt.halves[1], *message.mutable_second_half());
  for (const auto& [rows, weight] : learnt.batches) {
    auto* batch = message.add_batches();
    batch->set_rows(rows);
    batch->set_weight(weight);
  }
  for (const ReplayCost::Sample& one : learnt.costs) {
    auto* cost = message.add_costs();
    cost->set_row_size(one.row_size);
    cost->set_weight(one.weight);
    cost->set_rows(one.rows);
    cost->set_rows2(one.rows2);
    cost->set_ns(one.ns);
    cost->set_rows_ns(one.rows_ns);
  }
  return message;
}

void ReadLearnt(const recipe::v1::Learnt& message, const std::string& device, ModelUsage& usage) {
  LearntBuckets& learnt = usage.learnt;
  for (const auto& axis : message.axes()) {
    usage.axes.push_back(axis.label());
    learnt.start.emplace_back(axis.start().begin(), axis.start().end());
    learnt.boundaries.emplace_back(axis.boundaries().begin(), axis.boundaries().end());
  }
  learnt.expected_waste = message.expected_waste();
  learnt.halves[0] = SizesOf(message.first_half());
  learnt.halves[1] = SizesOf(message.second_half());
  for (const auto& batch : message.batches()) {
    learnt.batches.emplace_back(batch.rows(), batch.weight());
  }
  if (message.device() != device) return;
  for (const auto& one : message.costs()) {
    learnt.costs.push_back(
        {one.row_size(), one.weight(), one.rows(), one.rows2(), one.ns(), one.rows_ns()});
  }
}

bool MoreUsed(const RecipeUse& a, const RecipeUse& b) { return a.uses > b.uses; }

// Returns the usage in the record, if it can be used. Reports damage to the store.
std::optional<ModelUsage> ReadUsage(RecipeStore& store, const RecordName& name,
                                    const GraphFingerprint& graph, const std::string& device) {
  const RecipeStore::Found found = store.Read(name);
  if (!found.payload.has_value()) return std::nullopt;
  absl::StatusOr<ModelUsage> usage = DecodeUsage(*found.payload, graph, device);
  if (usage.ok()) return *std::move(usage);
  store.NoteCorrupt(name, usage.status().message());
  return std::nullopt;
}

}  // namespace

RecordName UsageNameOf(const ModelId& id, const GraphFingerprint& graph) {
  return {.kind = RecordKind::kUsage,
          .key = Hash64(absl::StrCat(id.name, "\n", graph.digest)),
          .graph = Hash64(graph.digest),
          .subject = Hash64(id.name),
          .origin = Hash64(id.name)};
}

std::string AddUsage(absl::string_view stored, const ModelId& id, const GraphFingerprint& graph,
                     const std::string& device, const ModelUsage& usage, int64_t now_unix_s) {
  std::map<uint64_t, RecipeUse> by_key;
  const absl::StatusOr<ModelUsage> before = DecodeUsage(stored, graph, device);
  if (before.ok()) {
    for (const RecipeUse& use : before->recipes) by_key[use.key] = use;
  }
  for (const RecipeUse& use : usage.recipes) {
    const uint64_t uses = by_key[use.key].uses;
    by_key[use.key] = use;
    by_key[use.key].uses += uses;
  }
  std::vector<RecipeUse> recipes;
  for (auto& [key, use] : by_key) {
    if (use.last_used_unix_s < now_unix_s - kForgottenAfterS) continue;
    recipes.push_back(std::move(use));
  }
  std::stable_sort(recipes.begin(), recipes.end(), MoreUsed);
  if (recipes.size() > kMostRecipes) recipes.resize(kMostRecipes);

  recipe::v1::StoredUsage message;
  message.set_graph(graph.digest);
  message.set_model(id.name);
  message.set_version(id.version);
  message.set_updated_unix_s(now_unix_s);
  for (const RecipeUse& use : recipes) {
    auto* to = message.add_recipes();
    to->set_key(use.key);
    to->set_uses(use.uses);
    to->set_last_used_unix_s(use.last_used_unix_s);
    for (const auto& [axis, size] : use.sizes) {
      auto* axis_size = to->add_sizes();
      axis_size->set_axis(axis);
      axis_size->set_size(size);
    }
  }
  *message.mutable_learnt() = LearntMessage(usage, device);
  return message.SerializeAsString();
}

absl::StatusOr<ModelUsage> DecodeUsage(absl::string_view bytes, const GraphFingerprint& graph,
                                       const std::string& device) {
  recipe::v1::StoredUsage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("it is not a valid message");
  }
  if (message.graph() != graph.digest) {
    return absl::FailedPreconditionError("it is of another graph");
  }
  ModelUsage usage;
  for (const auto& one : message.recipes()) {
    RecipeUse& use = usage.recipes.emplace_back();
    use.key = one.key();
    use.uses = one.uses();
    use.last_used_unix_s = one.last_used_unix_s();
    for (const auto& size : one.sizes()) {
      if (size.size() < 1 || size.size() > kLargestSize) {
        return absl::DataLossError(absl::StrCat("it knows a size ", size.size()));
      }
      use.sizes[size.axis()] = size.size();
    }
  }
  std::stable_sort(usage.recipes.begin(), usage.recipes.end(), MoreUsed);
  ReadLearnt(message.learnt(), device, usage);
  return usage;
}

ModelUsage FindUsage(RecipeStore& store, const ModelId& id, const GraphFingerprint& graph,
                     const std::string& device) {
  const RecordName own = UsageNameOf(id, graph);
  const std::vector<RecipeStore::Entry> entries = store.List();
  std::set<uint64_t> stored;
  std::vector<const RecipeStore::Entry*> others;
  bool has_own = false;
  for (const RecipeStore::Entry& entry : entries) {
    if (!entry.name.has_value()) continue;
    if (entry.name->kind == RecordKind::kRecipe) stored.insert(entry.name->key);
    if (entry.name->kind != RecordKind::kUsage || entry.name->graph != own.graph) continue;
    if (entry.name->key == own.key) {
      has_own = true;
    } else {
      others.push_back(&entry);
    }
  }
  std::optional<ModelUsage> usage;
  if (has_own) usage = ReadUsage(store, own, graph, device);
  std::set<uint64_t> known;
  if (usage.has_value()) {
    for (const RecipeUse& use : usage->recipes) known.insert(use.key);
  }
  std::stable_sort(others.begin(), others.end(), [](const auto* a, const auto* b) {
    return a->modified_unix_s > b->modified_unix_s;
  });
  std::vector<RecipeUse> of_others;
  for (const RecipeStore::Entry* entry : others) {
    std::optional<ModelUsage> other = ReadUsage(store, *entry->name, graph, device);
    if (!other.has_value()) continue;
    for (RecipeUse& use : other->recipes) {
      // A capture for the traffic of another model would not pay.
      const bool is_there = stored.count(use.key) != 0 && known.insert(use.key).second;
      if (is_there) of_others.push_back(std::move(use));
    }
    other->recipes.clear();
    if (!usage.has_value()) usage = std::move(other);
  }
  if (!usage.has_value()) return {};
  std::stable_sort(of_others.begin(), of_others.end(), MoreUsed);
  usage->recipes.insert(usage->recipes.end(), std::make_move_iterator(of_others.begin()),
                        std::make_move_iterator(of_others.end()));
  return *std::move(usage);
}

}  // namespace reprise
