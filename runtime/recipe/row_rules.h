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
  // without a rule mixes rows.
  bool KeepsRowsApart(const Node& node) const;

  // Returns whether `node` reads nothing of rows that no request has, with any results for them.
  static bool ReadsLiveRowsAlone(const Node& node);

 private:
  using Rule = bool (RowRules::*)(const Node& node, const Shape& out) const;
  static Rule RuleOf(const Node& node);

  const Shape& ShapeOf(const Node& node, size_t i) const {
    return *graph_.value(node.input(i)).shape;
  }
  bool Has(const Node& node, size_t i) const { return node.input(i) != kNone; }
  bool IsMarked(const Node& node, size_t i) const {
    return Has(node, i) && graph_.value(node.input(i)).batch_rows == rows_;
  }
  // Returns whether operand i is left out, or marked along dim 0 of a result of shape `out`, or the
  // same for every element of that dim.
  bool Follows(const Node& node, size_t i, const Shape& out) const;
  // Returns whether attribute `axis` names another dim than dim 0 of input 0.
  bool AxisIsInside(const Node& node) const;
  // Returns whether input i names axes, none of them dim 0.
  bool AxesAreInside(const Node& node, size_t i) const;

  // The rules that rows of the op table name (RowRule); `out` is the shape of the first result.
  bool First(const Node& node, const Shape& out) const;
  bool FirstAlone(const Node& node, const Shape& out) const;
  bool Third(const Node& node, const Shape& out) const;
  bool All(const Node& node, const Shape& out) const;
  bool AllFollow(const Node& node, const Shape& out) const;
  bool FirstAndAllFollow(const Node& node, const Shape& out) const;
  bool AlongAxis(const Node& node, const Shape& out) const;
  bool AddNorm(const Node& node, const Shape& out) const;
  bool Attention(const Node& node, const Shape& out) const;
  bool AppendRows(const Node& node, const Shape& out) const;
  bool Concat(const Node& node, const Shape& out) const;
  bool Conv(const Node& node, const Shape& out) const;
  bool DimZeroStays(const Node& node, const Shape& out) const;
  bool EmbeddingSum(const Node& node, const Shape& out) const;
  bool Gather(const Node& node, const Shape& out) const;
  bool IntegerConv(const Node& node, const Shape& out) const;
  bool IntegerLinear(const Node& node, const Shape& out) const;
  bool LastDims(const Node& node, const Shape& out) const;
  bool Linear(const Node& node, const Shape& out) const;
  bool MatMul(const Node& node, const Shape& out) const;
  bool MatMulInteger(const Node& node, const Shape& out) const;
  bool Quantisation(const Node& node, const Shape& out) const;
  bool Reduction(const Node& node, const Shape& out) const;
  bool Resize(const Node& node, const Shape& out) const;
  bool RelativeAttention(const Node& node, const Shape& out) const;
  bool SegmentAttention(const Node& node, const Shape& out) const;
  bool Slice(const Node& node, const Shape& out) const;
  bool Transpose(const Node& node, const Shape& out) const;

  const Graph& graph_;
  const int64_t rows_;
};

}  // namespace reprise
