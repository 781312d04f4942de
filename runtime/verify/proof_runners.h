// ProofRunners: who runs the model for a proof. The engine implements it.
//
// Threads: all methods of ProofRunners from any; a ProofRunner belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/node.h"
#include "runtime/graph/tensor.h"

namespace reprise {

// The form of the model in which requests lie one after another in a replay.
struct PackedForm {
  int sequence_axis = -1;  // position in ProofSubject::axes
  int64_t longest = 0;     // tokens of a row
  bool takes_any_mask = false;
};

class ProofRunner {
 public:
  virtual ~ProofRunner() = default;

  // Returns the outputs at exactly the shapes of `inputs`, without any padding. INVALID_ARGUMENT
  // for a value out of range (see RangePayload) or shapes that do not fit; RESOURCE_EXHAUSTED where
  // a run is too large to be tried.
  virtual absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) = 0;

  // A request of a packed replay, by the inputs of the graph.
  struct Part {
    const std::vector<Tensor>* inputs = nullptr;
    int64_t rows = 0;
    int64_t length = 0;
  };
  // Returns the outputs of the packed form, by part and position, where `parts` lie beside each
  // other. `behind` lies in tokens behind the last segment, which belong to nobody; null: zeros do.
  virtual absl::StatusOr<std::vector<std::vector<Tensor>>> RunPacked(absl::Span<const Part> parts,
                                                                     const Part* behind) = 0;
};

class ProofRunners {
 public:
  virtual ~ProofRunners() = default;

  // This many runners work side by side.
  virtual int threads() const = 0;
  // RESOURCE_EXHAUSTED: there is no memory for it. The runners of one object share recipes.
  virtual absl::StatusOr<std::unique_ptr<ProofRunner>> NewRunner() = 0;
  // Returns the same for `form`, another form of the model with the same inputs, which the runner
  // borrows. It has recipes of its own.
  virtual absl::StatusOr<std::unique_ptr<ProofRunner>> NewRunner(const Graph& form) = 0;

  // Makes the packed form, once, which runners run from then on. The error says why there is none.
  virtual absl::StatusOr<PackedForm> Pack() = 0;
};

}  // namespace reprise
