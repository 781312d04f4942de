// Loop, with the values that its body computes as operands.
//
//   Loop(trip count?, condition?, carried..., the body's results: condition, carried...,
//   scanned...) reprise.LoopStep() -> iteration, condition, carried...
//
// The importer puts the nodes of the body around it, as around an If for its branches; they take
// the values that each iteration begins with from LoopStep. The two have the attribute `loop` in
// common, `carried` of Loop is the number of carried values. Results of Loop: the carried values
// after the last iteration, then the scanned ones of all iterations, stacked along the dim that
// `axes` says (0), the last iteration first where `directions` says 1. `dtypes` (ONNX's numbers)
// and, where the file declares them, `dims0`, `dims1`, ... describe one iteration's results.
//
// No recipe holds these ops: a graph is cut at each Loop, whose body runs iteration by iteration
// (engine/tail/tail_run.h), on recipes of its own.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

Rule LoopRule, LoopStepRule;
Kernel LoopKernel, LoopStepKernel;

}  // namespace reprise::ops

namespace reprise {

// The layout of the operands and results of a Loop.
struct LoopParts {
  explicit LoopParts(const Node& loop);

  static constexpr size_t kTripCount = 0, kCondition = 1, kFirstCarried = 2;
  static constexpr size_t kStepIteration = 0, kStepCondition = 1, kStepFirstCarried = 2;

  size_t carried;       // values
  size_t scanned;       // values
  size_t first_result;  // the body's first among the Loop's operands: the condition
};

// Returns the number that a Loop and its LoopStep share.
int64_t LoopNumber(const Node& node);

// Returns the results of the Loop's body, in that order.
std::vector<ValueId> BodyResults(const Node& loop);

// Returns the LoopStep of this Loop; kNone where no node takes anything from it.
NodeId StepOf(const Graph& graph, const Node& loop);

}  // namespace reprise
