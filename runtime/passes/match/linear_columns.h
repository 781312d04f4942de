// Products with weights, of some of their columns.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// `node` is a product with weights (ops/quantized/linear_form.h) without a residual, and all that
// belongs to its columns are weights: so that CutColumns can cut them.
bool HasColumnsToCut(const Graph& graph, const Node& node);

// Returns its inputs for columns [begin, begin + count) alone: weights, and other inputs per
// column, are cut; the others are as they were. A matrix that was joined of such parts gives the
// part.
absl::StatusOr<std::vector<ValueId>> CutColumns(Graph& graph, const Node& node, int64_t begin,
                                                int64_t count);

}  // namespace reprise
