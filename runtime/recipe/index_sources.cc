#include "runtime/recipe/index_sources.h"

#include <algorithm>

#include "runtime/base/hash_map.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// Returns the graph input that `value` is computed from, when it is one alone.
ValueId DataRoot(const Graph& graph, ValueId value) {
  ValueId root = kNone;
  std::vector<ValueId> left = {value};
  HashSet<ValueId> seen = {value};
  while (!left.empty()) {
    const ValueId one = left.back();
    left.pop_back();
    const Value& from = graph.value(one);
    if (from.kind == Value::Kind::kInput) {
      if (root != kNone) return kNone;
      root = one;
    }
    if (from.kind != Value::Kind::kResult) continue;
    for (const ValueId input : graph.node(from.producer).inputs) {
      if (input != kNone && seen.insert(input).second) left.push_back(input);
    }
  }
  return root;
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
