// ResultTypes: the dtypes of a graph's values while shapes are not known, for example after a node
// whose sizes depend on data; and the rules that op_table.cc names for it. The shape rules give the
// same dtypes once shapes are known (InferNode).
#pragma once

#include <vector>

#include "runtime/graph/node.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

// Returns the dtypes, indexed by value; kUndefined where one cannot be known: after an input
// without a dtype, or an If whose branches differ. `graph` is compact.
std::vector<DType> ResultTypes(const Graph& graph);

namespace ops {

// Makes all results like operand `i`.
template <size_t i>
DType TypeLike(const Node&, size_t, absl::Span<const DType> operands) {
  return i < operands.size() ? operands[i] : DType::kUndefined;
}

// Makes all results like operand `i`, or `dtype` where it is left out.
template <size_t i, DType dtype>
DType TypeLikeOr(const Node& node, size_t, absl::Span<const DType> operands) {
  return node.input(i) == kNone ? dtype : operands[i];
}

template <DType dtype>
DType TypeIs(const Node&, size_t, absl::Span<const DType>) {
  return dtype;
}

// Returns the type by a rule for each result; the last one is for all that follow as well.
template <TypeRule... rules>
DType TypeOfEach(const Node& node, size_t result, absl::Span<const DType> operands) {
  constexpr TypeRule kRules[] = {rules...};
  constexpr size_t kLast = sizeof...(rules) - 1;
  return kRules[result < kLast ? result : kLast](node, result, operands);
}

DType CastTypes(const Node& node, size_t result, absl::Span<const DType> operands);
DType ConstantOfShapeTypes(const Node& node, size_t result, absl::Span<const DType> operands);
DType QuantizeLinearTypes(const Node& node, size_t result, absl::Span<const DType> operands);
// Returns the dtype that attribute `dtype` says; without it float32, or operand 0's.
DType RandomTypes(const Node& node, size_t result, absl::Span<const DType> operands);
DType DTypeOrLikeTypes(const Node& node, size_t result, absl::Span<const DType> operands);
// Returns the dtype that attribute `double` says.
DType ClassScoresTypes(const Node& node, size_t result, absl::Span<const DType> operands);
// Returns the dtype that attribute `stash_type` says.
DType StashTypes(const Node& node, size_t result, absl::Span<const DType> operands);
// Return the types of ops whose bodies are part of the graph around them: see branch.h and loop.h.
DType IfTypes(const Node& node, size_t result, absl::Span<const DType> operands);
DType LoopTypes(const Node& node, size_t result, absl::Span<const DType> operands);
DType LoopStepTypes(const Node& node, size_t result, absl::Span<const DType> operands);

}  // namespace ops
}  // namespace reprise
