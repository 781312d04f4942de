// EngineOptions: what an engine runs on, its limits, and whom it tells.
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
  std::string symbolic;     // that of its model, after the load passes
  std::string specialized;  // that its kernels were chosen for; empty: it cannot be made again
};

struct EngineOptions {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  HelperPool* cores = nullptr;           // that replays run on
  int64_t cache_bytes = 1 << 30;         // --recipe-cache-memory-mb
  int64_t eager_cache_bytes = 64 << 20;  // --eager-cache-memory-mb
  // Limits the parameters of all models, as stored and as kernels want them; 0: no limit.
  int64_t parameter_bytes = 0;
  // The account of all requests for memory that data decide, and not shapes: values that a request
  // makes after a node whose sizes are data. Null: no account. It outlives the engine.
  MemoryBudget* data_memory = nullptr;
  // Keeps what outlives a restart; null: nothing does. It outlives the engine.
  RecipeStore* store = nullptr;
  // Where captures run; null: on the threads of those who ask. See Engine::Prepare.
  CapturePool* captures = nullptr;
  bool frozen = false;  // no model captures anything for a request
  bool eager = false;   // every model runs op by op: CapturePolicy::kOff
  // Knows what timing has shown of kernels; the engine has its own.
  const KernelChoices* choices = nullptr;
  // Told of every recipe that is about to be published and whose size follows from shapes alone:
  // the streams it will run on can make room.
  std::function<void(const Recipe&)> on_primed = [](const Recipe&) {};
  // Told of every capture, when those who waited for it are known.
  std::function<void(const MissRecord&)> on_capture = [](const MissRecord&) {};
  // Told of every graph that was compiled because of a capture, as text: before it got its sizes,
  // and behind the passes. Null: nobody keeps them.
  std::function<void(const Recipe&, const RecipeGraphs&)> on_graphs;
  DebugLog* debug = nullptr;  // told of phases and choices; null: nobody listens
  // JSON of what the engine has compiled and replayed (runtime/engine/metrics/compilations.h),
  // written when the triggers say, at the latest when the engine ends. Empty: nothing is counted.
  std::string metrics_file;
  MetricsTriggers metrics_triggers = {.at_exit = true};
  // Warnings and notes for the operator ("model minilm: axis sequence is not certified: …").
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

}  // namespace reprise
