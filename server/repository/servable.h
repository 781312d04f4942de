// Servable: a model version that is loaded, with all that answering a request needs.
//
// Ownership: shared by the repository and by the requests in flight; immutable, except for
// counts.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bucket/shape_recorder.h"
#include "runtime/engine/model/model.h"
#include "server/config/model_settings.h"
#include "server/repository/generation_loop.h"
#include "server/repository/signature.h"
#include "server/repository/stateful_form.h"
#include "server/repository/warmup.h"

namespace reprise {

class PictureModel;     // see server/pictures/picture_model.h
class RankedServables;  // see ranked_servables.h
struct RequestQueue;    // where requests wait: see server/requests/queue.h
class SequenceTable;    // state between requests: see server/requests/sequence_table.h

struct Servable {
  // Ends captures that are still under way for the model.
  ~Servable() {
    if (model != nullptr) model->Abandon();
  }

  bool IsFrozen() const { return freeze.IsOn(frozen); }

  // Set when it was told that the model's files have changed.
  mutable std::atomic<bool> damaged{false};
  std::shared_ptr<Model> model;
  ModelSettings settings;
  bool frozen = false;                       // it, or the server: until `freeze` is set
  FreezeSwitch freeze;                       // nothing is captured for a request
  std::vector<std::string> unused_settings;  // that were reported when it was loaded
  Signature signature;
  std::shared_ptr<RequestQueue> queue;           // null until requests may come
  std::shared_ptr<const StatefulForm> stateful;  // null where the model keeps no state
  std::shared_ptr<SequenceTable> sequences;      // as `queue`; null where `stateful` is
  std::shared_ptr<Warmup> warmup;
  std::shared_ptr<const PictureModel> pictures;  // null where the model takes no pictures
  std::string pictures_refusal;                  // why that is so
  // Not null where the file has two sides (see server/hub/two_sides.h), of which this one takes the
  // texts: `pictures` is read for it, and requests with its inputs are its own.
  std::shared_ptr<const Servable> picture_side;
  // Lines of `label_filename` of an output, by its position; not there: it names none.
  std::map<int, std::vector<std::string>> output_labels;
  std::shared_ptr<GenerationLoop> generation;  // null where the model makes no tokens
  std::string generation_refusal;              // why that is so
  std::shared_ptr<ShapeRecorder> shapes = std::make_shared<ShapeRecorder>();
  // Not null where a request decides the ranks of inputs: it is served by one of these then, and
  // the rest of this one stands for all of them.
  std::shared_ptr<RankedServables> ranked;
};

// Returns whether some request may be served: nothing is captured for one of a frozen model,
// which is of use with its first recipe.
inline bool CanAnswer(const Servable& servable) {
  if (!servable.IsFrozen() || servable.model == nullptr || servable.generation != nullptr) {
    return true;
  }
  if (servable.model->options().capture == CapturePolicy::kOff) return true;  // It needs none.
  return !servable.model->ready().Snapshot()->empty();
}

// Returns UNAVAILABLE that names a rank that is missing, where several compute the model's tokens.
inline absl::Status RanksOf(const Servable& servable) {
  return servable.generation == nullptr ? absl::OkStatus() : servable.generation->state();
}

}  // namespace reprise
