// ProberLanes: the probers of the threads that share what there is to measure of a model.
//
// Ownership: borrows model, graph and context. Threads: one caller at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/load/padding_prober.h"

namespace reprise {

class ProberLanes {
 public:
  ProberLanes(const Model& model, const Graph& graph, const LoaderContext& context)
      : model_(model), graph_(graph), context_(context), sampler_(graph, model.axes()) {}

  const SizeSampler& sampler() const { return sampler_; }

  // Calls `work` for each of [0, count), on as many threads as there are cores. Returns the first
  // error. RESOURCE_EXHAUSTED: no memory for a stream.
  absl::Status ForEach(size_t count,
                       const std::function<absl::Status(size_t, const PaddingProber&)>& work);

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<const PaddingProber> prober;
  };
  absl::Status AddLane();

  const Model& model_;
  const Graph& graph_;
  const LoaderContext& context_;
  const SizeSampler sampler_;
  ExactRecipes recipes_;
  std::vector<Lane> lanes_;
};

}  // namespace reprise
