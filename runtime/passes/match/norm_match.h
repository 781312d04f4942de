// The statistics of a normalisation over the last dim, as exporters spell them: shared by
// fuse_layer_norm and fuse_rms_norm.
#pragma once

#include <optional>

#include "runtime/graph/node.h"

namespace reprise {

enum class NormKind {
  kVariance,        // mean((x - mean(x)) ^ 2)
  kRootMeanSquare,  // mean(x ^ 2)
};

struct NormStatistics {
  ValueId x = kNone;
  double epsilon = 0;
};

// Returns the x of mean(x) over the last dim with the dim kept; kNone when `value` is no such mean.
ValueId MeanOperand(const Graph& graph, ValueId value);
// Returns the x of x - mean(x), or of mean(x) - x where `either_sign`; kNone otherwise.
ValueId CentredOperand(const Graph& graph, ValueId value, bool either_sign);
// sqrt(statistic(x) + epsilon), the root as Sqrt or as a power.
std::optional<NormStatistics> MatchDeviation(const Graph& graph, ValueId value, NormKind kind);
// 1 / sqrt(statistic(x) + epsilon), as Reciprocal, Div or a power.
std::optional<NormStatistics> MatchInverse(const Graph& graph, ValueId value, NormKind kind);
// Returns whether it is a weight of as many elements as x's last dim, along that dim.
bool IsPerFeature(const Graph& graph, ValueId weight, ValueId x);

}  // namespace reprise
