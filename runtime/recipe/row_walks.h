// RowWalks: which parts of a graph run row by row.
//
// A batch of pictures is larger than the caches, one picture is often not. Where nodes that follow
// one another keep the rows of the batch apart and move much more than they have weights, all of
// them run for row 0 first, then for row 1, and so on: values between them are still in the cache,
// and have room for one row alone.
#pragma once

#include <optional>
#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

struct RowWalk {
  NodeId first = 0, last = 0;  // both included; all nodes between them
};

class RowWalks {
 public:
  RowWalks() = default;
  // Finds the walks of a specialised, compacted and marked (MarkBatchRows) graph, which they
  // borrow.
  RowWalks(const Graph& graph, int64_t rows);

  const std::vector<RowWalk>& walks() const { return walks_; }
  int64_t rows() const { return rows_; }
  // Returns the walk that `node` is in; -1: none.
  int Of(NodeId node) const { return walks_.empty() ? -1 : of_node_[node]; }
  // Returns the graph that `node` is compiled in: in a walk, the graph of one row.
  const Graph& GraphOf(NodeId node) const { return Of(node) < 0 ? *graph_ : *one_row_; }
  // Returns whether `value` has a part for each row; node ids of a walk see its part alone.
  bool HasRows(ValueId value) const;

 private:
  const Graph* graph_ = nullptr;
  int64_t rows_ = 0;
  std::vector<RowWalk> walks_;  // ascending
  std::vector<int> of_node_;
  std::optional<Graph> one_row_;  // its ids are the same
};

}  // namespace reprise
