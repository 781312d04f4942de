// ModelUsage: how much the recipes of a model are used and the buckets that its traffic taught, as
// a record of the recipe store.
//
// It holds for the model's graph: also on another device, and with another compiler (but for the
// times of replays, which are a device's own). A name has a record of its own, since models of one
// graph may have other traffic; a name without one, as after a rename, starts with the records of
// others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bucket/advisor.h"
#include "runtime/bucket/policy.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/key.h"
#include "runtime/recipe/record_name.h"

namespace reprise {

class RecipeStore;

struct RecipeUse {
  uint64_t key = 0;  // key of its record
  uint64_t uses = 0;
  int64_t last_used_unix_s = 0;
  AxisSizes sizes;  // keyed by axis label, {kTokensAxis: n} if packed; empty: not to be warmed
};

struct ModelUsage {
  std::vector<RecipeUse> recipes;  // the most used first
  std::vector<std::string> axes;   // labels of learnt.boundaries
  LearntBuckets learnt;
};

RecordName UsageNameOf(const ModelId& id, const GraphFingerprint& graph);

// Returns the bytes to write where `stored` is there now (empty: nothing, or nothing that can be
// used): uses are added to the stored ones.
std::string AddUsage(absl::string_view stored, const ModelId& id, const GraphFingerprint& graph,
                     const std::string& device, const ModelUsage& usage, int64_t now_unix_s);

// Returns DATA_LOSS for bytes that are none; FAILED_PRECONDITION for a record of another graph.
absl::StatusOr<ModelUsage> DecodeUsage(absl::string_view bytes, const GraphFingerprint& graph,
                                       const std::string& device);

// Returns the store's facts about the model: the record of its name, and the recipes that models of
// other names used of the same graph and that the store has. The learnt buckets are the name's own,
// else the last writer's among the others.
ModelUsage FindUsage(RecipeStore& store, const ModelId& id, const GraphFingerprint& graph,
                     const std::string& device);

}  // namespace reprise
