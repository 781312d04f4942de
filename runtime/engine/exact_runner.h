// ExactRunner: runs a model at exactly the shapes it is given, without bucket, batch or cache.
//
// What the certificate is measured with. Recipes are kept by shape while the runner lives.
// Threads: one caller at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/device.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/stream.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/compiler.h"

namespace reprise {

class ExactRunner {
 public:
  // All references must outlive the runner. `inputs` are those of the graph, in its order.
  ExactRunner(const Graph& graph, const GraphFingerprint& fingerprint,
              const std::vector<ModelIo>& inputs, ParameterStore& parameters, const Device& device,
              const Clock& clock, Stream& stream)
      : graph_(graph),
        fingerprint_(fingerprint),
        inputs_(inputs),
        parameters_(parameters),
        device_(device),
        clock_(clock),
        stream_(stream) {}

  // INVALID_ARGUMENT for shapes that do not fit and for data errors (with the range as a payload).
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs);

  // Times each launch at the shapes of `inputs`.
  absl::StatusOr<RecipeProfile> Profile(const std::vector<Tensor>& inputs, int repeats);

 private:
  absl::StatusOr<std::shared_ptr<const Recipe>> RecipeFor(const std::vector<Tensor>& inputs);
  // The frame of `recipe` on the stream with `inputs` copied in.
  absl::StatusOr<Frame> FrameFor(const std::shared_ptr<const Recipe>& recipe,
                                 const std::vector<Tensor>& inputs, ReplayErrors& errors);

  const Graph& graph_;
  const GraphFingerprint& fingerprint_;
  const std::vector<ModelIo>& inputs_;
  ParameterStore& parameters_;
  const Device& device_;
  const Clock& clock_;
  Stream& stream_;
  std::map<Binding, std::shared_ptr<const Recipe>> recipes_;
};

}  // namespace reprise
