#include "runtime/passes/kit/node_choice.h"

#include "absl/algorithm/container.h"

namespace reprise {
namespace {

absl::string_view WithoutDomain(absl::string_view op) {
  const size_t dot = op.rfind('.');
  return dot == absl::string_view::npos ? op : op.substr(dot + 1);
}

}  // namespace

// Goes back to the last * only: linear for the patterns that people write, and never worse than
// their product.
bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  size_t p = 0, n = 0;
  size_t star = absl::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool IsOpType(absl::string_view type, const std::string& op) {
  return type == op || type == WithoutDomain(op);
}

std::string NameOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.name.empty()) return node.name;
  for (const ValueId output : node.outputs) {
    if (output != kNone) return graph.value(output).name;
  }
  return "";
}

bool NodeChoice::Holds(const Graph& graph, NodeId id) const {
  const Node& node = graph.node(id);
  return absl::c_any_of(ops,
                        [&](const std::string& op) {
                          return IsOpType(op, node.op) || IsOpType(op, SourceOp(node));
                        }) ||
         absl::c_any_of(patterns, [&](const std::string& pattern) {
           return MatchesPattern(pattern, NameOf(graph, id));
         });
}

std::vector<std::string> NodeChoice::Unused(const Graph& graph,
                                            const std::vector<NodeId>& nodes) const {
  std::vector<std::string> unused;
  const auto look = [&](const std::vector<std::string>& entries, const auto& choice_of) {
    for (const std::string& entry : entries) {
      const NodeChoice one = choice_of(entry);
      if (absl::c_none_of(nodes, [&](NodeId id) { return one.Holds(graph, id); })) {
        unused.push_back(entry);
      }
    }
  };
  look(patterns, [](const std::string& entry) { return NodeChoice{.patterns = {entry}}; });
  look(ops, [](const std::string& entry) { return NodeChoice{.ops = {entry}}; });
  return unused;
}

}  // namespace reprise
