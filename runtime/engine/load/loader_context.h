// LoaderContext: the parts of its engine that loading a model needs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/debug_log.h"
#include "runtime/device/device.h"
#include "runtime/engine/model/model_program.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/types/graph_history.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/key.h"
#include "runtime/recipe/ready_index.h"
#include "runtime/recipe/store.h"

namespace reprise {

struct LoaderContext {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  Observer* observer = nullptr;
  HelperPool* cores = nullptr;
  MemoryBudget* parameter_budget = nullptr;
  RecipeStore* store = nullptr;  // null: everything is measured at each start
  DebugLog* debug = nullptr;     // receives the log of phases; null: no log
  std::function<void(const std::string&)> log;
  // Returns the recipes of a graph that are ready: the holder of the index sees them come and go.
  std::function<std::shared_ptr<const ReadyIndex>(const GraphFingerprint&)> index_of;
  // Returns how a program differs from the one served under the name before; null: not at all.
  std::function<std::shared_ptr<const GraphChange>(const std::string& name, const ModelProgram&)>
      change_since;
  // Returns the graph that was served under the name before, or is still; nullopt: none is known.
  std::function<std::optional<Graph>(const std::string& name)> graph_before;
};

}  // namespace reprise
