// EngineOptions: what an engine runs on, its limits, and whom it tells.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/device/device.h"

namespace reprise {

class CapturePool;
class HelperPool;
class KernelChoices;
class RecipeStore;
struct MissRecord;
struct Recipe;

struct EngineOptions {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  HelperPool* cores = nullptr;           // that replays run on
  int64_t cache_bytes = 1 << 30;         // --recipe-cache-memory-mb
  int64_t eager_cache_bytes = 64 << 20;  // --eager-cache-memory-mb
  // Limits the parameters of all models, as stored and as kernels want them; 0: no limit.
  int64_t parameter_bytes = 0;
  // Keeps what outlives a restart; null: nothing does. It outlives the engine.
  RecipeStore* store = nullptr;
  // Where captures run; null: on the threads of those who ask. See Engine::Prepare.
  CapturePool* captures = nullptr;
  bool frozen = false;  // no model captures anything for a request
  bool eager = false;   // every model runs op by op: CapturePolicy::kOff
  // Knows what timing has shown of kernels; the engine has its own.
  const KernelChoices* choices = nullptr;
  // Told of every recipe that is about to be published: the streams it will run on can make room.
  std::function<void(const Recipe&)> on_primed = [](const Recipe&) {};
  // Told of every capture, when those who waited for it are known.
  std::function<void(const MissRecord&)> on_capture = [](const MissRecord&) {};
  // Warnings and notes for the operator ("model minilm: axis sequence is not certified: …").
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

}  // namespace reprise
