// ModelRunners: runs a model for the proofs of its padding, at exact shapes and packed.
//
// Ownership: borrows the objects that its options point to; a packed form is shared. Threads: all
// methods from any.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/device/device.h"
#include "runtime/engine/load/exact_runner.h"
#include "runtime/engine/packing/packing.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/verify/proof_runners.h"

namespace reprise {

class ModelRunners final : public ProofRunners {
 public:
  using MakePacking = std::function<absl::StatusOr<std::shared_ptr<const Packing>>()>;
  struct Options {
    const Graph* graph = nullptr;  // as it is after the load passes
    const GraphFingerprint* fingerprint = nullptr;
    std::vector<ModelIo> inputs;  // the graph's, in its order
    ParameterStore* parameters = nullptr;
    const Device* device = nullptr;
    const Clock* clock = nullptr;
    int threads = 1;           // runners at a time
    MakePacking make_packing;  // empty: nothing is packed
  };
  explicit ModelRunners(Options options) : options_(std::move(options)) {}

  int threads() const override { return options_.threads; }
  absl::StatusOr<std::unique_ptr<ProofRunner>> NewRunner() override;
  absl::StatusOr<std::unique_ptr<ProofRunner>> NewRunner(const Graph& form) override;
  absl::StatusOr<PackedForm> Pack() override;

  // Returns the packed form that Pack made, or why there is none.
  absl::StatusOr<std::shared_ptr<const Packing>> packing();

 private:
  class Runner;
  // A form of the model that one runner runs.
  struct Form {
    const Graph& graph;
    GraphFingerprint fingerprint;
    ExactRecipes recipes;
  };

  // Constant after construction.
  const Options options_;
  // Self-synchronised.
  ExactRecipes recipes_;
  // Guarded.
  Mutex mutex_;
  bool packed_ GUARDED_BY(mutex_) = false;  // Pack was asked for
  absl::StatusOr<std::shared_ptr<const Packing>> packing_ GUARDED_BY(mutex_) =
      absl::UnknownError("not tried");
};

}  // namespace reprise
