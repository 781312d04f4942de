// Axis rules: how the positions along one axis of a model flow through an op.
//
// Every row of the op table has one. A rule looks at where the positions of the operands lie and
// the facts about the padding there, sets the same of the results, and says where the op lets one
// position see another: that is where padding could change an answer. A rule that cannot know says
// so (Doubt); none may call a harmful step harmless.
//
// The model is looked at at two sizes of the axis at once, a small and a large one, since values
// that follow the length (one over it, positions counted from the end) differ between them.
//
// Threads: rules are pure functions of their context.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/graph/extent.h"
#include "runtime/ops/axis/uneven_tables.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

struct IndexMap;

// The number that all elements past the end of a request hold; nullopt: they may hold anything.
using PaddingValue = std::optional<double>;

// Lines of positions along a dim, one after another: dims that became one, as rows of pixels do.
struct PositionPart {
  int64_t lines = 1;
  Extent extent;      // positions of each line
  int64_t inner = 1;  // elements of each position

  int64_t At(int64_t size) const { return lines * extent.At(size) * inner; }
  friend bool operator==(const PositionPart&, const PositionPart&) = default;
};

// One dim that the axis lies along.
struct Positions {
  int64_t dim = 0;
  int64_t inner = 1;  // how many elements of the dim belong to one position, side by side
  PaddingValue padding;
  bool moved = false;     // position i need not lie at index i: how they lie is not known
  bool repeated = false;  // the first one of something else follows the last position
  // How many positions a request has here, by its size: fewer than that after strides.
  Extent extent;
  // The lines that they lie in, where there are several (`repeated`), or several such dims were
  // joined (`moved` as well). Empty: one line, or it is not known.
  std::vector<PositionPart> parts;
  // A request's elements come first, in their order, wherever their positions are (`moved`).
  bool compact = false;

  // Returns whether the padding holds infinity or NaN everywhere.
  bool IsInfinite() const { return padding.has_value() && !std::isfinite(*padding); }
  // Rules that do not look at parts do not know their effect on them.
  bool IsJoined() const { return moved && (!parts.empty() || compact); }
  // Returns one or more; none: not known.
  std::vector<PositionPart> KnownParts() const;
};

// Returns the same positions, along dim `dim`.
inline Positions AlongDim(const Positions& positions, int64_t dim) {
  Positions moved = positions;
  moved.dim = dim;
  return moved;
}

struct AxisFlowValue {
  // Made of constants alone, also of inputs that say where requests end and of those without the
  // axis, or of anything a client may send.
  enum class Source { kConstant, kLive, kData };

  std::vector<Positions> along;  // ascending dims; empty: no position has a say of its own
  Source source = Source::kConstant;
  // A constant that is not the same, or does not begin alike, at another size of the axis.
  bool follows_size = false;
  // It follows the size, but by one number for all elements of a line along this dim: a softmax
  // along it does not see that. Biases by distance are so, where they are counted from the last
  // key.
  std::optional<int64_t> shifted;
  bool nonnegative = false;  // no element is below zero, whatever the inputs hold
  // Numbers that a client may choose have a say: not constants and counts of masks alone.
  bool chosen = false;
  // The input of integers some of whose elements these are, in any order; empty: they are others.
  std::string places;
  // Infinities or NaN may be among them for ordinary requests: elements made of padding may become
  // infinite where no others do.
  bool unbounded = false;
  // Batch axis: the values are places of rows, each row (or a column of each) holding its own.
  bool own_place = false;
  // The numbers are how many positions each row's request has: see ops/windows/live.h.
  std::optional<Extent> counts;
  // The integers are places among this number of positions of each row's request.
  std::optional<Extent> below;

  const Positions* At(int64_t dim) const;
};

// The finding of a walk over a model. See certify/axis_flow.h.
struct AxisFinding {
  enum class Verdict { kProved, kUndecided, kMixes };

  Verdict verdict = Verdict::kProved;
  std::string node;  // the first that makes the verdict: "node '/pool/ReduceMean' (ReduceMean)"
  std::string how;   // "averages over sequence"
  // Inputs of integers that are places among the request's positions: the verdict holds for
  // requests whose places lie from 0 to its size. See AxisFlowOptions::checks_places.
  std::set<std::string> in_request;
  bool at_any_size = false;  // it is not proved at small sizes either

  bool proved() const { return verdict == Verdict::kProved; }
  friend bool operator==(const AxisFinding&, const AxisFinding&) = default;
};

struct AxisFlowOptions {
  std::string axis;  // its name for people
  // Positions are requests, which may lie anywhere: looking back only is no safer then.
  bool is_batch = false;
  int64_t small_size = 0;  // size of the axis in the first graph
  int64_t large_size = 0;  // and in the second
  // Both are multiples of it, as all sizes are that the walk is to speak for.
  int64_t step = 1;
  // The number that the padding of an input holds, by its name. Other padding may hold anything.
  std::map<std::string, double> fills;
  // The inputs among them that say where requests end: nothing but ones and zeros.
  std::set<std::string> live;
  // Constants that hold one number here, if they do, by the sizes alone.
  UnevenTables uneven;
  // `is_batch` is set, and padding repeats the last position of each input. What a position becomes
  // depends on itself alone then, so that padding goes on repeating the last position.
  bool repeats_last = false;
  // Whether inputs are places of the request (AxisFinding::in_request) is looked at for each one.
  bool checks_places = false;
};

// One node under the eyes of its rule.
class AxisContext {
 public:
  // Borrows all arguments. `flows`: by value of `graph`.
  AxisContext(const Graph& graph, const Graph& larger, const Node& node, const Node& larger_node,
              const AxisFlowOptions& options, std::vector<AxisFlowValue>& flows);

  const Node& node() const { return node_; }
  NodeId id() const;
  const Attributes& attributes() const { return node_.attributes; }
  const std::string& axis() const { return options_.axis; }
  bool is_batch() const { return options_.is_batch; }
  int64_t axis_size() const { return options_.small_size; }
  int64_t larger_axis_size() const { return options_.large_size; }
  int64_t step() const { return options_.step; }
  // Returns whether padding repeats the last position, see AxisFlowOptions.
  bool repeats_last() const { return options_.repeats_last; }
  size_t num_inputs() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return node_.input(i) != kNone; }
  bool has_output(size_t i) const { return node_.output(i) != kNone; }
  // Returns whether output `i` is read.
  bool IsRead(size_t i) const;
  const AxisFlowValue& input(size_t i) const;
  const Shape& shape(size_t i) const;
  const Shape& larger_shape(size_t i) const;
  DType dtype(size_t i) const;
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  const Shape& output_shape(size_t i = 0) const;
  const Shape& larger_output_shape(size_t i = 0) const;
  int64_t output_rank(size_t i = 0) const { return static_cast<int64_t>(output_shape(i).size()); }
  // Returns whether the output's dim has the axis' size in both graphs.
  bool OutputGrows(int64_t dim, size_t output = 0) const;
  // It has the positions of `extent` in both graphs.
  bool OutputHas(const Extent& extent, int64_t dim, size_t output = 0) const;
  // Returns the positions that a dim of these sizes has: the positions of the axis, or of the one
  // value whose number of positions is the same. nullopt: none is, or it is not certain which.
  std::optional<Extent> ExtentOf(int64_t size, int64_t larger_size) const;
  std::optional<Extent> OutputExtent(int64_t dim, size_t output = 0) const;
  // Returns the parts that values have which are as large as this at both sizes, no two alike.
  std::vector<std::vector<PositionPart>> PartsOf(int64_t size, int64_t larger_size) const;
  // Places along the dim of these positions in the smaller graph.
  int64_t CountOf(const Positions& positions) const {
    return positions.extent.At(options_.small_size);
  }
  // Returns whether the first result is made of floats.
  bool casts_to_float() const;
  // Returns the value of an operand where it is known; `larger_constant`: that at the larger size.
  const Tensor* constant(size_t i) const;
  const Tensor* larger_constant(size_t i) const;
  std::optional<std::vector<int64_t>> integers(size_t i) const;
  std::optional<std::vector<int64_t>> larger_integers(size_t i) const;
  // Returns the one value of a constant operand all of whose elements are equal.
  std::optional<double> Uniform(size_t i) const;
  // Returns an attribute that names a dim of operand `i`, in [0, rank).
  int64_t Dim(int64_t dim, size_t i = 0) const { return dim < 0 ? dim + rank(i) : dim; }
  // Returns the index map of the node, where it is the same at both sizes.
  std::optional<IndexMap> map() const;
  bool AnyPositions() const;
  // Padding of operand `i` along its dim `dim` may hold values that zero does not remove.
  bool MayBeInfiniteAt(size_t i, int64_t dim) const;
  // Some element of operand `i` may be one.
  bool MayBeInfinite(size_t i) const;
  // Returns whether the places that operand `i` holds may be below zero, which counts them from the
  // end, for some contents of the inputs. `column`: only those of this element of its last dim
  // count.
  bool MayCountFromEnd(size_t i, std::optional<int64_t> column = std::nullopt) const;

  // Returns whether operand `i` is places among these positions of the request, none of them in the
  // padding; where inputs hold them, the verdict holds as long as they are.
  bool TakesFromRequest(size_t i, const Positions& positions);

  // Sets where positions lie in a result. Its source follows from the operands' sources.
  void Set(size_t output, AxisFlowValue flow);

  // After Set: result `output` holds places among these positions, none of them in the padding.
  void SetBelow(size_t output, const Positions& positions);
  // After Set: whether padding may have made result `output` infinite, where the rule knows better.
  void SetUnbounded(size_t output, bool unbounded);

  // Tells that a position sees others, or the length: "averages over".
  void Mix(absl::string_view how);
  // Position i sees a few others, found by where they lie: nothing is known where they may lie
  // elsewhere (`moved`, `repeated`).
  void Look(absl::string_view how, const Positions& positions);
  // Tells that it cannot be seen here whether padding shows.
  void Doubt(absl::string_view how);

  const AxisFinding& finding() const { return finding_; }

 private:
  void Note(AxisFinding::Verdict verdict, std::string how);

  const Graph& graph_;
  const Graph& larger_;
  const Node& node_;
  const Node& larger_node_;
  const AxisFlowOptions& options_;
  std::vector<AxisFlowValue>& flows_;
  bool IsNonnegative(size_t output) const;
  // Integers of the result may wrap around, so that products of positive numbers are below zero.
  bool MayWrap(size_t output) const;
  // Returns whether no element of the operand is below one, whatever the inputs hold: its logarithm
  // is no less than zero.
  bool IsAtLeastOne(size_t i) const;
  // Returns whether all elements are above zero.
  bool IsPositive(ValueId value, int depth = 0) const;
  // Returns whether none is above zero, as scores less their largest are.
  bool IsNotPositive(ValueId value) const;
  // Returns whether the node makes something infinite of some numbers that are not.
  bool MayOverflow() const;
  // `result`: where positions lie in result `output`.
  bool MayBeUnbounded(size_t output, const AxisFlowValue& result) const;
  // Returns whether infinite padding of operand `i` has become numbers that are not known.
  bool LosesInfinity(size_t i, size_t output, const AxisFlowValue& result) const;
  // Returns whether no result is made of the infinite padding `from` of operand `i`, as where it is
  // not chosen.
  bool LeavesOut(size_t i, const Positions& from) const;
  // Returns whether the results are integers of operand 0.
  bool KeepsPlaces() const;

  AxisFinding finding_;
};

// Returns whether no element of the type is below zero: bool, and the unsigned integers.
bool IsNeverNegative(DType dtype);

// "node '/pool/ReduceMean' (ReduceMean)"; a node without a name goes by its result's name.
std::string AxisNodeName(const Graph& graph, const Node& node);

}  // namespace reprise
