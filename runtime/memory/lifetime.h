// AnalyzeLifetimes: which values of a graph share a buffer, where it lives, and for how long.
//
// A view's output is its input's bytes. An output of the graph is written where the scatter reads
// it, in the output space. A node may write its result over an input that no node reads afterwards.
// Everything else gets a buffer of its own in the arena, for the planner to place.
//
//   ASSIGN_OR_RETURN(Lifetimes lifetimes, AnalyzeLifetimes(graph, node_memory));
//   for (const Buffer& buffer : lifetimes.buffers)
//     if (buffer.home == Buffer::Home::kArena)
//       requests.push_back({buffer.bytes, buffer.first, buffer.last});
//   MemoryPlan plan = PlanMemory(requests);
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/node.h"

namespace reprise {

// The demands of a node's chosen kernel on memory.
struct NodeMemory {
  bool view = false;  // output 0 is input 0's bytes under another shape; nothing is launched
  int in_place = -1;  // input that output 0 may be written over; -1: none
  size_t workspace_bytes = 0;
};

struct Buffer {
  enum class Home { kArena, kInput, kOutput, kConstant, kParameter };

  Home home = Home::kArena;
  // Input, output: position among the graph's inputs or outputs. Constant, parameter: its ValueId.
  // Arena: -1.
  int index = -1;
  size_t bytes = 0;
  // Arena and output: node ids, first write to last use, both included. Others: the whole replay.
  int first = 0;
  int last = 0;
};

struct Lifetimes {
  std::vector<int> buffer_of_value;    // keyed by ValueId; -1 for a value removed
  std::vector<int> workspace_of_node;  // keyed by NodeId; -1: none
  std::vector<Buffer> buffers;
};

// `graph` is compacted and specialised; `nodes` has one entry a node id; time is the node id.
//
// An offer to run in place is taken only where it is safe: the input's buffer is in the arena, dead
// after this node, used by it through this one operand, large enough, and the result is not in the
// output space.
//
// Errors: INTERNAL, naming the value, where passes left a value that has no place: an output of the
// graph that is a view of an input, constant or parameter, or two outputs that share bytes (an
// Identity belongs there).
absl::StatusOr<Lifetimes> AnalyzeLifetimes(const Graph& graph, absl::Span<const NodeMemory> nodes);

}  // namespace reprise
