#include "runtime/recipe/index_sources.h"

#include <algorithm>

#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// The graph input that `value` is computed from, when it is one alone.
ValueId DataRoot(const Graph& graph, ValueId value) {
  while (true) {
    const Value& v = graph.value(value);
    if (v.kind == Value::Kind::kInput) return value;
    if (v.kind != Value::Kind::kResult) return kNone;
    ValueId next = kNone;
    for (ValueId input : graph.node(v.producer).inputs) {
      if (input == kNone) continue;
      const Value::Kind kind = graph.value(input).kind;
      if (kind == Value::Kind::kConstant || kind == Value::Kind::kParameter) continue;
      if (next != kNone && next != input) return kNone;
      next = input;
    }
    if (next == kNone) return kNone;
    value = next;
  }
}

}  // namespace

std::vector<int> IndexSources(const Graph& graph, const Node& node) {
  std::vector<int> sources(node.inputs.size(), -1);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId operand = node.inputs[i];
    if (operand == kNone || !IsInteger(graph.value(operand).dtype)) continue;
    const ValueId root = DataRoot(graph, operand);
    if (root == kNone) {
      if (node.attributes.Int("text", 0) != 0) sources[i] = kSomeText;
      continue;
    }
    const auto& inputs = graph.inputs();
    sources[i] = static_cast<int>(std::find(inputs.begin(), inputs.end(), root) - inputs.begin());
  }
  return sources;
}

}  // namespace reprise
