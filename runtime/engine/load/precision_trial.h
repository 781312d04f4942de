// PrecisionTrial: a model while its nodes are tried at several precisions: the loss of accuracy of
// a choice, and the time of each node.
//
// Ownership: borrows the model, which outlives it. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/load/exact_runner.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/model/model_view.h"
#include "runtime/engine/model/precision_choice.h"

namespace reprise {

// Returns 1 minus the least cosine of the rows of floats in `rounded` with those of `exact`, both
// indexed by request and output. A row is a place along the first dim; rows of few numbers count
// together with all others of their output. Elements that no answer has as a number do not count.
double LossOf(const std::vector<std::vector<Tensor>>& exact,
              const std::vector<std::vector<Tensor>>& rounded);

class PrecisionTrial {
 public:
  using Answers = std::vector<std::vector<Tensor>>;   // indexed by request and output
  using Chosen = std::map<std::string, Precision>;    // keyed by the name of a node
  using Requests = std::vector<std::vector<Tensor>>;  // a tensor for each of inputs()

  // Errors: no memory for a stream.
  static absl::StatusOr<std::unique_ptr<PrecisionTrial>> Make(const ModelView& model,
                                                              const LoaderContext& context);

  // Returns the inputs that requests have a tensor for.
  static std::vector<ModelIo> InputsOf(const ModelView& model);
  // Returns requests of one row with random numbers, at several lengths. INVALID_ARGUMENT where the
  // model takes none of them, with its error for the last.
  absl::StatusOr<Requests> MakeUp();
  // Takes the requests, and answers them exactly. Errors: those of the model.
  absl::Status Answer(Requests requests);
  size_t requests() const { return requests_.size(); }

  // A node that may round: not named by a rule.
  struct Candidate {
    PrecisionChoice::Node node;
    bool to_int8 = false, to_bf16 = false;
    std::map<Precision, int64_t> ns;  // see TimeAll
  };
  absl::StatusOr<std::vector<Candidate>> Candidates() const;
  // Sets the time of each candidate at each precision that it has.
  absl::Status TimeAll(std::vector<Candidate>& candidates);
  // Returns the loss of a choice, by the first `most` requests.
  absl::StatusOr<double> Loss(const Chosen& chosen, size_t most);

 private:
  PrecisionTrial(const ModelView& model, const LoaderContext& context,
                 std::unique_ptr<Stream> stream);
  // Returns the answers of the first `most` requests.
  absl::StatusOr<Answers> Run(const Requests& requests, size_t most, PipelineOptions passes);
  ExactRunner RunnerOf(ExactRecipes& recipes, PipelineOptions passes);

  // Constant after construction.
  const ModelView model_;
  const LoaderContext& context_;
  const Device& device_;
  const std::vector<ModelIo> inputs_;
  const std::unique_ptr<Stream> stream_;
  // Set by Answer.
  Requests requests_;
  Answers exact_;
};

}  // namespace reprise
