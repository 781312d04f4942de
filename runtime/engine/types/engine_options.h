// EngineOptions: the resources that an engine runs on, its limits, and its callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/debug_log.h"
#include "runtime/device/device.h"
#include "runtime/engine/types/metrics_triggers.h"

namespace reprise {

class CapturePool;
class HelperPool;
class KernelChoices;
class MemoryBudget;
class RecipeStore;
struct MissRecord;
struct Recipe;

// The graphs of a recipe as text.
struct RecipeGraphs {
  std::string symbolic;     // its model's, after the load passes
  std::string specialized;  // the one that its kernels were chosen for; empty: it cannot be made
                            // again
};

struct EngineOptions {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  HelperPool* cores = nullptr;           // the cores that replays run on
  int64_t cache_bytes = 1 << 30;         // --recipe-cache-memory-mb
  int64_t eager_cache_bytes = 64 << 20;  // --eager-cache-memory-mb
  // Limits the parameters of all models, as stored and as kernels want them; 0: no limit.
  int64_t parameter_bytes = 0;
  // The account of all requests for memory that data decide, and not shapes: values that a request
  // makes after a node whose sizes are data. Null: no account. It outlives the engine.
  MemoryBudget* data_memory = nullptr;
  // Keeps the results that outlive a restart; null: none. It outlives the engine.
  RecipeStore* store = nullptr;
  // Where captures run; null: on the requesting threads. See Engine::Prepare.
  CapturePool* captures = nullptr;
  // The share of padded answers that are computed again (engine/audit/auditor.h); 0: none. Needs
  // `captures`.
  double audit_share = 0;
  // The folder that requests are written to whose answers differ; empty: they are kept nowhere.
  std::string audit_dir;
  bool frozen = false;  // no model captures anything for a request
  bool eager = false;   // every model runs op by op: CapturePolicy::kOff
  // Holds the results of timing kernels; the engine has its own.
  const KernelChoices* choices = nullptr;
  // Called for every recipe that is about to be published and whose size follows from shapes alone:
  // the streams it will run on can make room.
  std::function<void(const Recipe&)> on_primed = [](const Recipe&) {};
  // Called for every capture, when its waiters are known.
  std::function<void(const MissRecord&)> on_capture = [](const MissRecord&) {};
  // Called for every graph that was compiled because of a capture, as text: before it got its
  // sizes, and after the passes. Null: they are not kept.
  std::function<void(const Recipe&, const RecipeGraphs&)> on_graphs;
  DebugLog* debug = nullptr;  // receives the log of phases and choices; null: no log
  // JSON of the engine's compilations and replays (runtime/engine/metrics/compilations.h), written
  // when the triggers say, at the latest when the engine ends. Empty: nothing is counted.
  std::string metrics_file;
  MetricsTriggers metrics_triggers = {.at_exit = true};
  // Warnings and notes for the operator ("model minilm: axis sequence is not certified: …").
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

}  // namespace reprise
