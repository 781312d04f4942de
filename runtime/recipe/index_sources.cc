#include "runtime/recipe/index_sources.h"

#include <algorithm>

#include "runtime/base/hash_map.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/windows/live_op.h"

namespace reprise {
namespace {

struct DataRoot {
  ValueId input = kNone;
  bool moved = true;  // no node on the way computes anything new
};

bool OnlyMoves(const Graph& graph, const Node& node) {
  const OpFacts& facts = FactsOf(node.op);
  return facts.OnlyMoves() ||
         (facts.sizes == Sizes::kConversion && IsInteger(graph.value(node.outputs[0]).dtype));
}

// Returns the graph input that `value` is computed from, when it is one alone.
DataRoot FindDataRoot(const Graph& graph, ValueId value) {
  DataRoot root;
  std::vector<ValueId> left = {value};
  HashSet<ValueId> seen = {value};
  while (!left.empty()) {
    const ValueId one = left.back();
    left.pop_back();
    const Value& from = graph.value(one);
    if (from.kind == Value::Kind::kInput) {
      if (root.input != kNone) return {};
      root.input = one;
    }
    if (from.kind != Value::Kind::kResult) continue;
    const Node& node = graph.node(from.producer);
    if (node.op == LiveFillOp::kName) {  // Past a row's end nothing is a request's.
      if (seen.insert(node.input(LiveFillOp::kX)).second) {
        left.push_back(node.input(LiveFillOp::kX));
      }
      continue;
    }
    root.moved = root.moved && OnlyMoves(graph, node);
    for (const ValueId input : node.inputs) {
      if (input != kNone && seen.insert(input).second) left.push_back(input);
    }
  }
  return root;
}

}  // namespace

std::vector<IndexSource> IndexSources(const Graph& graph, const Node& node) {
  std::vector<IndexSource> sources(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId operand = node.inputs[i];
    if (operand == kNone || !IsInteger(graph.value(operand).dtype)) continue;
    const DataRoot root = FindDataRoot(graph, operand);
    if (root.input == kNone) {
      if (node.attributes.Int("text", 0) != 0) sources[i].input = kSomeText;
      continue;
    }
    const auto& inputs = graph.inputs();
    const auto at = std::find(inputs.begin(), inputs.end(), root.input) - inputs.begin();
    sources[i] = {.input = static_cast<int>(at), .moved = root.moved};
  }
  return sources;
}

}  // namespace reprise
