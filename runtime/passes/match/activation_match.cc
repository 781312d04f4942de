#include "runtime/passes/match/activation_match.h"

#include <string>

#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {

Attributes NamedActivation(absl::string_view activation) {
  Attributes attributes;
  attributes.Set("activation", std::string(activation));
  return attributes;
}

// Returns the activation and its parameters; nullopt where the node is none.
std::optional<Attributes> ActivationOf(const Graph& graph, const Node& node) {
  if (node.op == ReluOp::kName) return NamedActivation("relu");
  if (node.op == TanhOp::kName) return NamedActivation("tanh");
  if (node.op == SigmoidOp::kName) return NamedActivation("sigmoid");
  if (node.op == HardSwishOp::kName) return NamedActivation("hard_swish");
  if (node.op == MishOp::kName) return NamedActivation("mish");
  if (node.op == GeluOp::kName) return NamedActivation(GeluOp::From(node).ActivationName());
  if (node.op == LeakyReluOp::kName || node.op == EluOp::kName) {
    const bool leaky = node.op == LeakyReluOp::kName;
    Attributes attributes = NamedActivation(leaky ? "leaky_relu" : "elu");
    attributes.Set("slope", node.attributes.Float("alpha", leaky ? 0.01f : 1.0f));
    return attributes;
  }
  if (node.op != ClipOp::kName) return std::nullopt;
  Attributes attributes = NamedActivation("clip");
  const char* const names[] = {"low", "high"};
  for (size_t i = 0; i < 2; ++i) {
    if (node.input(i + 1) == kNone) continue;
    const std::optional<double> bound = KnownScalar(graph, node.input(i + 1));
    if (!bound.has_value()) return std::nullopt;
    attributes.Set(names[i], static_cast<float>(*bound));
  }
  return attributes;
}

}  // namespace reprise
