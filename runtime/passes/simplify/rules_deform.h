// Rules of the canonicalize pass for deformable convolutions; see rules.h.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// DeformConv of one group by weights becomes the elements that its windows read and a product.
absl::StatusOr<ValueId> DeformConvRule(Graph& graph, NodeId node);

}  // namespace reprise
