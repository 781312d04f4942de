// ExactRunner: runs a model at exactly the shapes it is given, without bucket, batch or cache.
//
// Certificates are measured with it, and the effect of rounding. Runners on several threads may
// share their recipes. Threads: one caller at a time.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/device/device.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/input_signature.h"
#include "runtime/onnx/model_io.h"
#include "runtime/recipe/compiler.h"

namespace reprise {

// The recipes of one model that runners compiled, by shape. Threads: any.
class ExactRecipes {
 public:
  // Returns null while there is none.
  std::shared_ptr<const Recipe> Find(const Binding& binding) const {
    MutexLock lock(mutex_);
    const auto it = recipes_.find(binding);
    return it == recipes_.end() ? nullptr : it->second;
  }
  void Add(const Binding& binding, std::shared_ptr<const Recipe> recipe) {
    MutexLock lock(mutex_);
    recipes_.try_emplace(binding, std::move(recipe));
  }

 private:
  mutable Mutex mutex_;
  std::map<Binding, std::shared_ptr<const Recipe>> recipes_ GUARDED_BY(mutex_);
};

class ExactRunner {
 public:
  // All references must outlive the runner. `inputs` are the graph's, in its order. Runners that
  // share recipes have the same passes and batch symbol: CompileOptions::batch_symbol.
  ExactRunner(const Graph& graph, const GraphFingerprint& fingerprint,
              const std::vector<ModelIo>& inputs, ParameterStore& parameters, const Device& device,
              const Clock& clock, Stream& stream, ExactRecipes& recipes,
              PipelineOptions passes = {}, std::string batch_symbol = "")
      : graph_(graph),
        fingerprint_(fingerprint),
        signature_(inputs),
        parameters_(parameters),
        device_(device),
        clock_(clock),
        stream_(stream),
        recipes_(recipes),
        passes_(std::move(passes)),
        batch_symbol_(std::move(batch_symbol)) {}

  // Returns the outputs; INVALID_ARGUMENT for shapes that do not fit and for data errors (with the
  // range as a payload).
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs);

  // Returns the time of each node in a run, by the labels of launches (Launch::node): the least of
  // `repeats` runs, in nanoseconds on one thread. Errors as Run.
  absl::StatusOr<std::map<std::string, int64_t>> TimeNodes(const std::vector<Tensor>& inputs,
                                                           int repeats);

  // Makes Run return RESOURCE_EXHAUSTED for shapes at which a stream would have to hold more bytes,
  // when the work of all runs together (Recipe::work) would exceed `most_work`, and when kernels
  // that are plain loops, whose work a recipe does not tell, have taken `most_steps` in all runs.
  void Limit(int64_t most_frame_bytes, double most_work, int64_t most_steps) {
    most_frame_bytes_ = most_frame_bytes;
    most_work_ = work_left_ = most_work;
    steps_left_ = most_steps;
  }
  // Replays `recipe` within the rest of the steps.
  absl::Status Replay(const Recipe& recipe, const Frame& frame, const FirstDataError* end);

 private:
  absl::StatusOr<std::shared_ptr<const Recipe>> RecipeFor(const std::vector<Tensor>& inputs);
  // Returns the frame of `recipe` on the stream with `inputs` copied in.
  absl::StatusOr<Frame> FrameFor(const std::shared_ptr<const Recipe>& recipe,
                                 const std::vector<Tensor>& inputs, ReplayErrors& errors);

  const Graph& graph_;
  const GraphFingerprint& fingerprint_;
  const InputSignature signature_;
  ParameterStore& parameters_;
  const Device& device_;
  const Clock& clock_;
  Stream& stream_;
  ExactRecipes& recipes_;
  const PipelineOptions passes_;
  const std::string batch_symbol_;
  int64_t most_frame_bytes_ = std::numeric_limits<int64_t>::max();
  double most_work_ = std::numeric_limits<double>::infinity();
  double work_left_ = std::numeric_limits<double>::infinity();
  int64_t steps_left_ = std::numeric_limits<int64_t>::max();
};

}  // namespace reprise
