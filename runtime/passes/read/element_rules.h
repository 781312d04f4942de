// Which number each element of a result is, where the operands are known by the sizes of axes.
//
// Ops that move elements say which one they take, for any index: that serves shapes, one element
// after another, and tables, over the indices of their dims. Ops over integers that have a normal
// form say it; whatever else there is calls its reference kernel.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/read/known_value.h"

namespace reprise {

struct ElementContext {
  SizeTable& table;
  const Node& node;
  absl::Span<const KnownOperand> operands;
  absl::Span<const InferContext::Input> inputs;
  absl::Span<const InferContext::Output> outputs;
  size_t result = 0;

  const SizeList& shape(size_t operand) const { return inputs[operand].shape; }
  bool has(size_t operand) const {
    return operand < inputs.size() && inputs[operand].dtype != DType::kUndefined;
  }
};

// Returns whether result `result` of the node can be known: its operands are, or none is needed.
bool MayKnow(const ElementContext& context);

// Returns the element at `index`. UNIMPLEMENTED where nothing says it; INVALID_ARGUMENT where the
// node does not take its operands.
absl::StatusOr<Size> ElementAt(const ElementContext& context, absl::Span<const Size> index);

// Result `context.result` as a whole, under the same errors.
absl::StatusOr<KnownValue> KnownResult(const ElementContext& context);

}  // namespace reprise
