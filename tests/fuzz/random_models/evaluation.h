// Evaluation: the answer of a drawn model for one request, by the reference kernels alone.
//
// Values are computed when they are asked for, so an If runs only the branch that is taken. No pass
// and no recipe has a part in it. `Noise` disturbs rounded values by about a rounding: how far an
// answer moves then is how far rounding alone may move it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"

namespace reprise::fuzz {

// Returns by value whether its elements depend on elements of an input, not on sizes alone.
std::vector<bool> DependsOnData(const Graph& graph);

class Noise {
 public:
  // `at_steps`: share of the largest element by which operands of ops move whose results jump.
  explicit Noise(uint64_t seed, double at_steps = 0) : random_(seed), at_steps_(at_steps) {}
  // Moves the elements of a result of `op` by up to four units in their last place and, unless each
  // is rounded by itself, by one unit of the largest element. One that only additions and
  // multiplications made of small binary fractions stays: these are exact in any order.
  Tensor Disturb(const Tensor& tensor, absl::string_view op);
  // An operand of an op that rounds, compares or chooses: two answers that are alike to the bound
  // may lie on both sides of its step.
  bool disturbs_steps() const { return at_steps_ > 0; }
  Tensor DisturbAtStep(const Tensor& tensor);

 private:
  std::mt19937_64 random_;
  double at_steps_;
};

class Evaluation {
 public:
  // `inputs`: by position in graph.inputs(). Both outlive the evaluation. `noise`: null for none.
  Evaluation(const Graph& graph, const std::vector<Tensor>& inputs, Noise* noise = nullptr);

  // INVALID_ARGUMENT where an op does not take its operands.
  absl::StatusOr<Tensor> ValueOf(ValueId id);
  absl::StatusOr<std::vector<Tensor>> Outputs();
  // Returns whether some op looked something up for a result without elements: nothing reads the
  // indices.
  bool LookedUpNothing() const { return looked_up_nothing_; }

 private:
  absl::Status Run(NodeId id);
  absl::Status RunIf(const Node& node);
  absl::Status RunLoop(const Node& node);

  const Graph& graph_;
  Noise* const noise_;
  std::vector<bool> data_;  // DependsOnData, where there is noise
  std::vector<std::optional<Tensor>> values_;
  bool looked_up_nothing_ = false;
};

}  // namespace reprise::fuzz
