// Nodes that read a few positions of a value that is computed for many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// Which positions are picked: at most half of them.
struct Pick {
  int64_t axis = 0;                // that they lie along
  int64_t from = 0, count = 0;     // positions there are, and that are picked
  std::vector<int64_t> positions;  // where they are known; else each segment picks one:
  std::string op;
  Attributes attributes;
  std::vector<ValueId> operands;  // those after the data; the last are the segments

  friend bool operator==(const Pick&, const Pick&) = default;
};

// Returns the positions that `node`, of a specialised graph, picks of input 0, which is a result;
// nullopt where it is no such node, or picks more than half.
std::optional<Pick> MatchPick(const Graph& graph, const Node& node);

// Joins nodes that pick known positions of `data`, where no node reads others: one node picks all
// of them, and those pick theirs of its result. Returns whether that was so.
absl::StatusOr<bool> JoinPicks(Graph& graph, ValueId data);

}  // namespace reprise
