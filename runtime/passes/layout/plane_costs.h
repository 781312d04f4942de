// Costs of a convolution with the channels of its planes first (NCHW), and with them last (NHWC):
// estimates in cycles of one core, by which passes choose between the two.
//
// The constants are fitted to times of the kernels on an AMD Zen 5 (AVX-512); vectors of half the
// width about double all of them, which changes no choice.
//
// Threads: pure.
#pragma once

#include <optional>

#include "runtime/graph/node.h"

namespace reprise {

struct PlaneCosts {
  double first = 0, last = 0;
  // The channels of its operand are few, and lie first either way: only the result is transposed.
  bool to_last = false;
};

// Costs of a Conv or reprise.Conv that has kernels for both layouts; nullopt for other nodes.
std::optional<PlaneCosts> PlaneCostsOf(const Graph& graph, const Node& node);

// Returns whether the windows of a convolution are the elements of its planes.
bool IsOfElements(const Graph& graph, const Node& node);

// Returns the cost of transposing planes of `shape`, channels first, to channels last.
double TurningCost(const Shape& shape);

}  // namespace reprise
