// Activations that are fused into the node before them, in the form of reprise.Conv's attributes.
#pragma once

#include <optional>

#include "runtime/graph/node.h"

namespace reprise {

// "activation" alone.
Attributes NamedActivation(absl::string_view activation);
// Returns the activation and its parameters; nullopt where the node is none.
std::optional<Attributes> ActivationOf(const Graph& graph, const Node& node);

}  // namespace reprise
