// LoaderContext: what loading a model needs of its engine.
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
  DebugLog* debug = nullptr;     // told of phases; null: nobody listens
  std::function<void(const std::string&)> log;
  // The recipes of a graph that are ready: whoever holds the index sees them come and go.
  std::function<std::shared_ptr<const ReadyIndex>(const GraphFingerprint&)> index_of;
  // How a program differs from what was served under the name before; null: in nothing.
  std::function<std::shared_ptr<const GraphChange>(const std::string& name, const ModelProgram&)>
      change_since;
  // The graph that was served under the name before, or is still; nullopt: none is known.
  std::function<std::optional<Graph>(const std::string& name)> graph_before;
};

}  // namespace reprise
