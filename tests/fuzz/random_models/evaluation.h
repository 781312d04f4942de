// Evaluation: the answer of a drawn model for one request, by the reference kernels alone.
//
// Values are computed when they are asked for, so that of an If only the branch that is taken runs.
// No pass and no recipe has a part in it. `Noise` disturbs what was rounded by about a rounding:
// how far an answer moves then is how far rounding alone may move it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise::fuzz {

// The values of which elements hang on elements of an input, and not on sizes alone.
std::vector<bool> DependsOnData(const Graph& graph);

class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed) {}
  // Moves the elements of a float tensor by up to four units in their last place and one in that of
  // the largest element. One that only additions and multiplications made of small binary fractions
  // stays: these are exact in any order.
  Tensor Disturb(const Tensor& tensor, bool adds_and_multiplies);

 private:
  std::mt19937_64 random_;
};

class Evaluation {
 public:
  // `inputs`: by position in graph.inputs(). Both outlive the evaluation. `noise`: null for none.
  Evaluation(const Graph& graph, const std::vector<Tensor>& inputs, Noise* noise = nullptr);

  // INVALID_ARGUMENT where an op does not take its operands.
  absl::StatusOr<Tensor> ValueOf(ValueId id);
  absl::StatusOr<std::vector<Tensor>> Outputs();

 private:
  absl::Status Run(NodeId id);
  absl::Status RunIf(const Node& node);
  absl::Status RunLoop(const Node& node);

  const Graph& graph_;
  Noise* const noise_;
  std::vector<bool> data_;  // DependsOnData, where there is noise
  std::vector<std::optional<Tensor>> values_;
};

}  // namespace reprise::fuzz
