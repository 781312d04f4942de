// ModelTraffic: the facts about the use of a model, before this start and since.
//
// All mutable members synchronise themselves.
#pragma once

#include <memory>

#include "runtime/engine/model/eager_cache.h"
#include "runtime/engine/traffic/bucket_learner.h"
#include "runtime/engine/traffic/model_usage.h"
#include "runtime/engine/types/graph_history.h"
#include "runtime/recipe/ready_index.h"

namespace reprise {

struct ModelTraffic {
  ModelUsage usage;                                // the recipe store's record when it was loaded
  std::unique_ptr<BucketLearner> learner;          // the buckets in force
  std::shared_ptr<const ReadyIndex> ready;         // recipes of the model's own graph
  std::shared_ptr<const ReadyIndex> packed_ready;  // null where the model is padded
  std::shared_ptr<EagerCache::Share> eager_share;  // the recipes that eager runs of it have
                                                   // prepared
  // How its graph differs from the one that was served under its name before; null: not at all, or
  // there was none.
  std::shared_ptr<const GraphChange> graph_change;
};

}  // namespace reprise
