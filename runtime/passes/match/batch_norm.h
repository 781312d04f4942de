// A BatchNormalization as the product and sum that it is for each map once its statistics are
// known, which the node in front of it can take into its weights.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// A BatchNormalization of maps to which `bias` was added (kNone: none): each is multiplied by its
// factor, and gets this bias.
struct BatchNorm {
  ValueId factor, bias;  // weights [maps]
};

// Weights of node `id`; nullopt where scale, shift, mean, variance or `bias` is data.
absl::StatusOr<std::optional<BatchNorm>> BatchNormOf(Graph& graph, NodeId id, ValueId bias);

// Rows [rows, maps] without positions: `id` becomes the product and the sum. False: it is none.
absl::StatusOr<bool> ReplaceBatchNormOfRows(Graph& graph, NodeId id);

}  // namespace reprise
