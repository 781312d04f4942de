// NodeChoice: nodes that a person names, by pattern of names or by op.
//
// A pattern has * for any text ("/encoder/layer.11/*"); a node without a name is called by its
// first result. An op is named with its domain or without ("com.microsoft.Gelu", "Gelu"), as the
// file has it or as the newest form is called.
//
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"

namespace reprise {

// Returns whether `name` is `pattern`, in which * stands for any text.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);
// Returns whether `op` is `type`, which may leave out the domain.
bool IsOpType(absl::string_view type, const std::string& op);

struct NodeChoice {
  std::vector<std::string> patterns;
  std::vector<std::string> ops;

  bool empty() const { return patterns.empty() && ops.empty(); }
  bool Holds(const Graph& graph, NodeId id) const;
  // Returns the entries that hold for no node of `nodes`.
  std::vector<std::string> Unused(const Graph& graph, const std::vector<NodeId>& nodes) const;
};

// Returns the name of the node, or of its first result.
std::string NameOf(const Graph& graph, NodeId id);

}  // namespace reprise
