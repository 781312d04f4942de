// Servable: a model version that is loaded, with all that answering a request needs.
//
// Ownership: shared by the repository and by the requests in flight; immutable, but for what
// is counted.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "runtime/bucket/shape_recorder.h"
#include "runtime/engine/model/model.h"
#include "server/config/model_settings.h"
#include "server/repository/generation_loop.h"
#include "server/repository/signature.h"
#include "server/repository/warmup.h"

namespace reprise {

class RankedServables;  // see ranked_servables.h
struct RequestQueue;    // where requests wait: see server/requests/queue.h

struct Servable {
  // Set when it was told that the model's files have changed.
  mutable std::atomic<bool> damaged{false};
  std::shared_ptr<Model> model;
  ModelSettings settings;
  Signature signature;
  std::shared_ptr<RequestQueue> queue;  // null until somebody may ask
  std::shared_ptr<Warmup> warmup;
  std::shared_ptr<GenerationLoop> generation;  // null where the model makes no tokens
  std::string generation_refusal;              // why that is so
  std::shared_ptr<ShapeRecorder> shapes = std::make_shared<ShapeRecorder>();
  // Not null where a request decides the ranks of inputs: it is served by one of these then, and
  // the rest of this one stands for all of them.
  std::shared_ptr<RankedServables> ranked;
};

}  // namespace reprise
