// LiveRewrite: the nodes of a model that look along an axis, changed to see where each row ends.
//
// Ownership: borrows the graph, which it changes. Threads: one.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/passes/live/live_extents.h"

namespace reprise {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

class LiveRewrite {
 public:
  LiveRewrite(Graph& graph, LiveAxes axes, LiveExtents extents)
      : graph_(graph), axes_(std::move(axes)), extents_(std::move(extents)) {}

  void Run();
  // Returns whether the graph has got an input for the axis.
  bool has_input() const { return live_ != kNone; }

 private:
  using Handler = void (LiveRewrite::*)(NodeId);
  static Handler HandlerOf(const Node& node);

  void VisitWindows(NodeId id);
  void VisitAverage(NodeId id);
  void VisitShare(NodeId id);
  void VisitMean(NodeId id);
  void VisitSum(NodeId id);
  void VisitExtreme(NodeId id);
  void VisitPick(NodeId id);
  void VisitNorm(NodeId id);
  void VisitSoftmax(NodeId id);
  void VisitProduct(NodeId id);
  void VisitAttention(NodeId id);
  void VisitRecurrent(NodeId id);
  void VisitSlice(NodeId id);
  void VisitReversed(NodeId id);
  void VisitLast(NodeId id);
  void VisitPad(NodeId id);
  void VisitNumbers(NodeId id);

  // Returns the known dims that a reduction reduces; and the live ones of them.
  std::optional<std::vector<int64_t>> ReducedDims(const Node& node) const;
  std::vector<LiveDim> LiveAmong(ValueId value, const std::vector<int64_t>& dims) const;
  // Returns whether its rows are the batch's, or there is no batch.
  bool HasRowsOfBatch(ValueId value) const;
  // Rows lie in front of the dim, the same number for each row of the batch.
  bool CanFill(ValueId value, const LiveDim& dim) const;

  // Returns whether the elements of `value`, which is made of sizes and constants, follow the
  // number of positions of a request: not only how many elements there are. nullopt: it is made of
  // something else, or in a way that ByRow does not know. `steps`: how far it is followed back.
  std::optional<bool> FollowsRows(ValueId value, int steps);
  std::optional<bool> LookForRows(ValueId value, int steps);
  // Returns a value that FollowsRows with one more dim in front, the rows of the batch, each of
  // which has what the value would be for its request.
  ValueId ByRow(ValueId value);
  ValueId MakeByRow(ValueId value);
  // Returns whether `node` makes a number, with a result of `rank` dims, of a list of that number.
  bool Unpacks(const Node& node, int64_t rank) const;
  // Returns the value and the dim whose size is the only element that `node` reads.
  std::optional<std::pair<ValueId, int64_t>> SizeRead(const Node& node) const;
  // Returns a value by row of `rank` dims besides the rows as one of `wanted`.
  ValueId WithRank(ValueId by_row, int64_t rank, int64_t wanted);
  // Returns whether softmaxes alone read it, after at most `additions`.
  bool IsScore(ValueId value, int additions) const;
  // Puts the last position of each row along dim `dim` of `x` in the place of node `id`.
  void TakeLast(NodeId id, ValueId x, int64_t dim, bool keepdims);
  // Returns the CumSum along dim `dim` that makes `value`, or null.
  const Node* SumAlong(ValueId value, int64_t dim) const;
  // Returns the operand of a Slice of `value` that turns its second dim of two around, or kNone.
  ValueId TurnedAround(ValueId value) const;
  // Returns whether `value` counts from 0 to the size of the batch, by its dims that are not 1.
  bool CountsRows(ValueId value, Size rows) const;
  // Returns the size of the only dim of `value` that is not 1; nullopt where there are several.
  std::optional<Size> LineOf(ValueId value) const;

  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId Ints(const std::vector<int64_t>& values);
  ValueId Live();
  // Returns the mask, an input of the model, that lies along dim `dim` of `value`, or kNone.
  ValueId MaskAlong(ValueId value, int64_t dim) const;
  // Hides past the end the keys of the softmax `id`, which lie along dim `dim` of its operand as
  // those of a mask do.
  void HideBesideMask(NodeId id, int64_t dim);
  // Returns how many positions of dim `dim` of `value` each row has.
  ValueId ExtentOf(const Extent& extent, ValueId value, int64_t dim);
  ValueId SizeOf(ValueId value, int64_t dim);
  // Returns the extents of the rows of `x` where they are known, else its size.
  ValueId CountAlong(ValueId x, int64_t dim);
  // Returns minus infinity past the ends along dim `dim` of `value`, and zeros before them, to be
  // added to scores of `rank` dims, the last of which is as long as that dim.
  ValueId MaskAfter(ValueId value, const LiveDim& dim, int64_t rank);
  // Returns `value` with `fill` past the ends along `dim`. Filled with zeros it takes the place of
  // `value` wherever that is read: nothing needs the padding.
  ValueId Filled(ValueId value, const LiveDim& dim, float fill);
  ValueId FillNode(ValueId value, int64_t axis, const Extent& extent, float fill);
  // Returns the same where lines of positions lie one after another, as `source` has them apart.
  ValueId FilledLines(ValueId value, ValueId source, const Extent& extent);
  // Returns the average of `value` over `dims`, kept as dims of 1, of which `live` count by their
  // ends.
  ValueId MeanOver(ValueId value, const std::vector<int64_t>& dims,
                   const std::vector<LiveDim>& live);
  ValueId CountOf(ValueId value, const std::vector<LiveDim>& live);
  void ReplaceOutput(NodeId id, ValueId by);
  // Puts a node with these inputs, more than it has, in the place of node `id`.
  void SetInputs(NodeId id, std::vector<ValueId> inputs);

  Graph& graph_;
  const LiveAxes axes_;
  LiveExtents extents_;
  ValueId live_ = kNone;
  std::map<ValueId, ValueId>
      beside_;  // the hiding value, by mask; nothing is added to scores elsewhere
  std::string source_op_, source_name_;  // the node that is looked at
  ValueId lines_ = kNone;  // has the lines apart that lie one after another in the averaged value
  std::map<ValueId, NodeId> shapes_;                // the Shape of a value
  std::map<ValueId, std::optional<bool>> numbers_;  // FollowsRows
  std::map<ValueId, ValueId> by_row_;               // ByRow
  std::map<std::tuple<ValueId, int64_t, float>, ValueId> filled_;
};

}  // namespace reprise
