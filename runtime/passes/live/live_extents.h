// LiveExtents: which dims of which values lie along an axis of a model, and how many positions a
// request has there.
//
// Read off the model (passes/read). Windows (convolutions, pools) say by themselves where positions
// go; after any other node a dim lies along the axis where it is as large as one of an operand at
// every size of the axis. The form that is made of it is proved by the walk of the certificate
// (certify/axis_flow.h).
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/extent.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/shapes/size.h"

namespace reprise {

// A dim that lies along the axis.
struct LiveDim {
  int64_t dim = 0;
  Extent extent;
  int64_t repeats = 1;  // this many lines of positions lie one after another
};

// The windows of a node along one dim; all of its pads are known.
struct LiveWindows {
  int64_t dim = 0;
  Extent extent;            // the results' own
  bool leaves_end = false;  // a request's last window may hold elements past its end
};

// The axes of a model, by symbol.
struct LiveAxes {
  std::string axis;   // that is looked along
  std::string batch;  // empty: none
  std::set<std::string> others;
  // Axes that are looked at with multiples of a number alone. See Extent::AtMultiplesOf.
  std::map<std::string, int64_t> steps;

  int64_t StepOf(const std::string& symbol) const {
    const auto step = steps.find(symbol);
    return step == steps.end() ? 1 : step->second;
  }
};

class LiveExtents {
 public:
  // NOT_FOUND where the model takes none of the sizes that it is read at.
  static absl::StatusOr<LiveExtents> Find(const Graph& graph, const LiveAxes& axes);

  const std::vector<LiveDim>& Of(ValueId value) const;
  std::optional<LiveDim> At(ValueId value, int64_t dim) const;
  // Returns nothing where pads follow the size.
  const std::vector<LiveWindows>& WindowsOf(NodeId node) const;
  // Returns the pads of a node whose pads are the same at all sizes: begins, then ends. Null:
  // others.
  const std::vector<int64_t>* PadsOf(NodeId node) const;
  // Returns the sizes of the dims of `value`; null where it is not there.
  const SizeList* SizesOf(ValueId value) const;
  // Returns the type of `value`; kUndefined where it is not there.
  DType TypeOf(ValueId value) const;
  // Returns whether the first dim of `value` grows with the batch, by the same number a row, also
  // for many rows: nothing cut the first few off. True without a batch.
  bool HasAllRows(ValueId value) const;
  // Returns whether the first dim of `value` is the batch. True without one.
  bool HasRowsAlone(ValueId value) const;
  int64_t RankOf(ValueId value) const;
  // Returns whether dim `dim` of `value` and `other_dim` of `other` agree at each size of the axis.
  bool HaveSameSizes(ValueId value, int64_t dim, ValueId other, int64_t other_dim) const;
  // Returns whether dim `dim` of `value` has other sizes at other sizes of the axis.
  bool FollowsAt(ValueId value, int64_t dim) const;
  // Returns the extents that values have, ascending.
  const std::set<Extent>& all() const { return all_; }
  bool has_windows() const { return !windows_.empty(); }
  // Returns the size of the axis from which on every window of the model lies where it has
  // elements.
  int64_t smallest() const { return smallest_; }

  // From now on `value` is taken for `like`, which it is except past the ends.
  void Alias(ValueId value, ValueId like) { aliases_[value] = Resolved(like); }

 private:
  LiveExtents() = default;
  ValueId Resolved(ValueId value) const;
  absl::Status Read(const Graph& graph, const LiveAxes& axes);
  // Returns how many of the first dim of `value` belong to each row, where that is the same number
  // for all of them; 1 without a batch.
  std::optional<Size> RowsOf(ValueId value) const;
  // Returns `size` divided by the size of the batch, where that leaves no rest at any size of it.
  std::optional<Size> Quotient(const SizeReading& reading, Size size) const;
  // Fills in `sizes_` and `at_sizes_`.
  void LookAlong(const std::string& axis);
  void Walk(const Graph& graph, const LiveAxes& axes);
  void VisitWindows(const Graph& graph, NodeId id);
  void Visit(const Graph& graph, NodeId id);
  std::optional<LiveDim> FindDim(const Graph& graph, const Node& node, ValueId output,
                                 int64_t dim) const;
  // Returns what `size` is at each of `sizes_`; null where that says nothing about others.
  const std::vector<int64_t>* AtSizes(Size size) const;
  // Returns whether `size` is `repeats` times the extent, at every size of the axis.
  bool Fits(Size size, const Extent& extent, int64_t repeats = 1) const;
  // Returns whether some dim of it has other sizes at other sizes of the axis.
  bool Follows(ValueId value) const;
  void Add(ValueId value, LiveDim dim);

  bool has_others_ = false;  // the model has other axes
  int64_t step_ = 1;         // all sizes of the axis are multiples of it
  SizeReading reading_;
  SizeReading many_rows_;  // the same for many rows; no table: the model takes no such batch
  std::string batch_;      // empty: none
  // Sizes of the axis, so many that sums of quotients that agree at them agree everywhere.
  std::vector<int64_t> sizes_;
  // The numbers that terms of the reading are at them, by id. Empty: no sum of quotients.
  std::vector<std::vector<int64_t>> at_sizes_;
  std::vector<bool> follows_;  // terms that hold the axis somewhere, by id
  std::map<ValueId, std::vector<LiveDim>> dims_;
  std::map<NodeId, std::vector<LiveWindows>> windows_;
  std::map<NodeId, std::vector<int64_t>> pads_;
  std::map<ValueId, ValueId> aliases_;
  std::set<Extent> all_;
  int64_t smallest_ = 1;
};

}  // namespace reprise
