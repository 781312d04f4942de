// reprise.SelectItem: one of several tensors, of any shapes, by a position in a sequence.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.SelectItem(position, item 0, item 1, ...) is the item whose index is the number of
// entries of attribute `from` that are not above the position. Positions go from -count to `last`,
// negative ones are counted from the end, which is `count` (attributes): INVALID_ARGUMENT for
// others.
// The ops of ONNX over sequences become this one where a request gives their position:
//   SequenceAt of n: n items, from = {1, 2, .., n - 1};
//   tensor i after SequenceInsert: {tensor i - 1, the new one, tensor i}, from = {i, i + 1};
//   tensor i after SequenceErase: {tensor i + 1, tensor i}, from = {i + 1}.
Rule SelectItemRule;
Kernel SelectItemKernel;

// Returns the input that holds the item at `position`.
absl::StatusOr<size_t> SelectedInput(const Node& node, int64_t position);

}  // namespace reprise::ops
