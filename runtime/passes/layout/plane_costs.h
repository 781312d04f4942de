// What convolutions take with the channels of their planes first, and with them last: estimates in
// cycles of one core, by which passes choose between the two.
//
// They are fits to what kernels took on an AMD Zen 5 (AVX-512); with half as wide vectors all of
// them about double, which changes no choice.
//
// Threads: pure.
#pragma once

#include <optional>

#include "runtime/graph/graph.h"

namespace reprise {

struct PlaneCosts {
  double first = 0, last = 0;
  // The channels of its operand are few, and lie first either way: the result is what is turned.
  bool to_last = false;
};

// Of a Conv or reprise.Conv that has kernels for both; nullopt for others.
std::optional<PlaneCosts> PlaneCostsOf(const Graph& graph, const Node& node);

// Whether the windows of a convolution are the elements of its planes.
bool IsOfElements(const Graph& graph, const Node& node);

// Of turning planes of `shape`, channels first.
double TurningCost(const Shape& shape);

}  // namespace reprise
