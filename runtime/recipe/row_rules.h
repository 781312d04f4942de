// RowRules: which ops keep the rows of a batch apart.
//
// Values that are one block a row of the batch axis are marked (Value::batch_rows). A node keeps
// rows apart if each block of its results is made of the blocks of its marked inputs at the same
// place, and of inputs that are the same for all rows.
//
// Ownership: borrows the graph. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/graph/graph.h"

namespace reprise {

class RowRules {
 public:
  // `graph`: specialised. `rows`: the size of the batch axis.
  RowRules(const Graph& graph, int64_t rows) : graph_(graph), rows_(rows) {}

  // Returns whether the results of `node` are one block a row, given the marks of its inputs. An op
  // without a map mixes rows.
  bool KeepsRowsApart(const Node& node) const;

  // Returns whether `node` reads nothing of rows that no request has, with any results for them.
  static bool ReadsLiveRowsAlone(const Node& node);

 private:
  bool IsMarked(const Node& node, size_t i) const {
    return node.input(i) != kNone && graph_.value(node.input(i)).batch_rows == rows_;
  }

  const Graph& graph_;
  const int64_t rows_;
};

}  // namespace reprise
