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

// The value of the elements at positions past the end of a request.
struct PaddingValue {
  enum class Kind {
    kUnknown,
    kConstant,  // `value`, everywhere
    kLow,       // anything plus `value`, which is negative
  };
  Kind kind = Kind::kUnknown;
  double value = 0;

  static PaddingValue Unknown() { return {}; }
  static PaddingValue Constant(double value) { return {Kind::kConstant, value}; }
  static PaddingValue Low(double value) { return {Kind::kLow, value}; }

  bool is_constant() const { return kind == Kind::kConstant; }
  bool Is(double constant) const { return kind == Kind::kConstant && value == constant; }
  // How low a mask has made it; nullopt where nothing is known.
  std::optional<double> Depth() const {
    if (kind == Kind::kUnknown) return std::nullopt;
    return value;
  }
};

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
  bool guarded = false;   // a mask may act here in a way that is not known; not data beside a mask
  bool settled = false;   // padding follows from fill values and weights alone
  bool moved = false;     // position i need not lie at index i: how they lie is not known
  bool repeated = false;  // the first one of something else follows the last position
  // How many positions a request has here, by its size: fewer than that after strides.
  Extent extent;
  // The lines that they lie in, where there are several (`repeated`), or several such dims were
  // joined (`moved` as well). Empty: one line, or it is not known.
  std::vector<PositionPart> parts;
  // A request's elements come first, in their order, wherever their positions are (`moved`).
  bool compact = false;

  // Rules that do not look at parts do not know their effect on them.
  bool IsJoined() const { return moved && (!parts.empty() || compact); }
  // One or more; none: not known.
  std::vector<PositionPart> KnownParts() const;
};

// Returns the same positions, along dim `dim`.
inline Positions AlongDim(const Positions& positions, int64_t dim) {
  Positions moved = positions;
  moved.dim = dim;
  return moved;
}

// Which places of a line along the axis must hold another value than the fill, in a guard of a
// request that is padded: the larger the stricter. A query that sees nothing but keys hidden
// from it spreads its attention over all keys, the padding as well.
enum class CountingPlaces { kNone, kOne, kFirst, kAll };

// Requirements on the inputs of a padded request: on its masks, so that no query is left with
// hidden keys alone, and on its places.
struct MaskNeeds {
  CountingPlaces places = CountingPlaces::kNone;  // asked of every mask
  // Inputs that hide keys of one softmax together. At most one of them may hide any, and that one
  // leaves these places.
  std::map<std::string, CountingPlaces> together;
  // Inputs of integers that are places among the request's positions, each from 0 to its size: of
  // the rows that were found, say. See AxisFlowOptions::checks_places.
  std::set<std::string> in_request;

  // Adds the demands of `other`.
  void Join(const MaskNeeds& other);
  // Nothing is asked for that `other` does not ask for.
  bool Within(const MaskNeeds& other) const;

  friend bool operator==(const MaskNeeds&, const MaskNeeds&) = default;
};

// Contents of whole lines of a table along the axis, where each line belongs to one query.
struct TableLines {
  bool zeros = false, ones = false;  // some are false, or true, for every key
  bool hidden = false;               // some hide every key
};

// The keys that a table of queries and keys hides, whatever the masks say.
enum class Structure {
  kNone,
  kApart,       // keeps the first key, and hides others deeper than a mask does
  kKeepsFirst,  // no query the first key: those that follow it, say
  kAny,         // windows, blocks
};

struct AxisFlowValue {
  // Made of constants alone, also of values that may be a mask (inputs that are masks and guards,
  // inputs without the axis), or of anything a client may send.
  enum class Source { kConstant, kGuards, kData };

  std::vector<Positions> along;  // ascending dims; empty: no position has a say of its own
  Source source = Source::kConstant;
  // A constant that is not the same, or does not begin alike, at another size of the axis.
  bool follows_size = false;
  // It follows the size, but by one number for all elements of a line along this dim: a softmax
  // along it does not see that. Biases by distance are so, where they are counted from the last
  // key.
  std::optional<int64_t> shifted;
  bool nonnegative = false;  // no element is below zero, whatever the inputs hold
  // Numbers that clients send are carried, scaled or added up in it, and nothing bounds them: one
  // may lie below, or above, any number that the model holds, and integers made of it may wrap
  // around.
  bool may_be_low = false, may_be_high = false;
  // Numbers that a client may choose have a say: not constants and counts of masks alone.
  bool chosen = false;
  Structure structure = Structure::kNone;
  TableLines lines;  // lines of tables that have a say
  // Inputs that may hide positions here: masks, ids that are compared with the value their padding
  // holds, and floats that lie as masks do.
  std::set<std::string> hiders;
  // The input of integers whose elements these are, moved at most; empty: they are others.
  std::string ids;
  // The input of integers some of whose elements these are, in any order; empty: they are others.
  std::string places;
  // Other data than the `hiders` has a say, or it is more than whether they hide.
  bool by_data = false;
  // Such data may have made any of the elements as low as a mask makes them.
  bool hidden_by_data = false;
  // The node that averaged over the axis values that are zero in the padding: off by a factor that
  // follows the size, which the quotient of two such does not have.
  NodeId averaged = kNone;
  // Infinities or NaN may be among them for ordinary requests: elements made of padding may become
  // infinite where no others do.
  bool unbounded = false;
  // Batch axis: the values are places of rows, each row (or a column of each) holding its own.
  bool own_place = false;
  // The numbers are how many positions each row's request has: see ops/windows/live.h.
  std::optional<Extent> counts;

  const Positions* At(int64_t dim) const;
};

// The finding of a walk over a model. See certify/axis_flow.h.
struct AxisFinding {
  enum class Verdict { kProved, kUndecided, kMixes };

  Verdict verdict = Verdict::kProved;
  std::string node;  // the first that makes the verdict: "node '/pool/ReduceMean' (ReduceMean)"
  std::string how;   // "averages over sequence without a mask"
  // The requests that the verdict holds for: those whose masks meet these needs.
  MaskNeeds needs;
  // The first node that passes over padding by numbers that a request may reach, and how:
  // "node '/Softmax' (Softmax) normalises under a mask of -10000, ... over sequence". The verdict
  // holds as long as they do not. Empty: there is none.
  std::string shallow;
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
  // Guards by name: the value that their padding holds. The padding of other inputs is unknown.
  std::map<std::string, double> guards;
  // The guards that are masks: nothing but ones and zeros. Other guards hold data.
  std::set<std::string> masks;
  // Constants that hold one number here, if they do, by the sizes alone.
  UnevenTables uneven;
  // `is_batch` is set, and padding repeats the last position of each input. What a position becomes
  // depends on itself alone then, so that padding goes on repeating the last position.
  bool repeats_last = false;
  // Whether inputs are places of the request (MaskNeeds::in_request) is looked at for each request.
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
  // An attribute that names a dim of operand `i`, in [0, rank).
  int64_t Dim(int64_t dim, size_t i = 0) const { return dim < 0 ? dim + rank(i) : dim; }
  bool AnyPositions() const;
  bool AnyGuarded() const;
  // Returns whether this input of the model is padded as a mask.
  bool IsMask(const std::string& name) const { return options_.masks.contains(name); }
  // Returns whether this input of the model holds floats.
  bool IsFloatInput(const std::string& name) const;
  // Padding of operand `i` along its dim `dim` may hold values that zero does not remove.
  bool MayBeInfiniteAt(size_t i, int64_t dim) const;
  // Returns whether the places that operand `i` holds may be below zero, which counts them from the
  // end, for some contents of the inputs. `column`: only those of this element of its last dim
  // count.
  bool MayCountFromEnd(size_t i, std::optional<int64_t> column = std::nullopt) const;

  // Returns whether operand `i` is places among these positions of the request, none of them in the
  // padding; the verdict holds as long as they are.
  bool TakesFromRequest(size_t i, const Positions& positions);

  // Sets where positions lie in a result. Its source follows from the operands' sources: it is a
  // mask made of them with `is_mask`.
  void Set(size_t output, AxisFlowValue flow, bool is_mask = false);

  // After Set: whether padding may have made result `output` infinite, where the rule knows better.
  void SetUnbounded(size_t output, bool unbounded);

  // Every position sees every other one, for which only a mask could make up: "averages over".
  // `guarded`: there may be one, so that it is for the measurement to say. `weak`: there is one,
  // which is no lower than this: louder contents than any measurement draws would show through.
  void Mix(absl::string_view how, bool guarded, std::optional<double> weak = std::nullopt);
  // Position i sees a few others, found by where they lie: nothing is known where they may lie
  // elsewhere (`moved`, `repeated`).
  void Look(absl::string_view how, const Positions& positions);
  // The verdict holds where masks count at these places.
  void MustCount(CountingPlaces places);
  // It holds where the hiders of keys of operand 0 leave each query these places between them.
  void MustLeave(CountingPlaces places);
  // Padding shows where numbers of a request reach those that hide it. Where nothing is padded it
  // cannot.
  void MayShow(absl::string_view how);
  // Position i sees the position at an index computed of the length.
  void SeeLength(absl::string_view how);
  // An earlier node, `node`, mixed positions, and that matters now.
  void BlameMixing(NodeId node, absl::string_view how);
  // Whether padding shows cannot be seen here.
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
  // Returns whether result `output` may be as low, or as high, as clients' numbers.
  bool MayReach(size_t output, bool low) const;
  // A constant of the node is the least, or the largest, that results can be.
  bool HasBound(bool low) const;
  // Integers of the result may wrap around, so that products of positive numbers are below zero.
  bool MayWrap(size_t output) const;
  // No element of the operand is below one, whatever the inputs hold: its logarithm is no less than
  // zero.
  bool IsAtLeastOne(size_t i) const;
  // All elements are above zero.
  bool IsPositive(ValueId value, int depth = 0) const;
  // None is above zero, as scores less their largest are.
  bool IsNotPositive(ValueId value) const;
  // Returns whether the node makes something infinite of some numbers that are not.
  bool MayOverflow() const;
  bool MayBeUnbounded() const;
  // Returns whether the effect of a mask in an operand is unknown already.
  bool AnyUnknownMask() const;
  // Returns whether the results are operand `i` laid out again, or made of its elements one by one:
  // masks that act on it act on them.
  bool Carries(size_t i) const;
  // Returns the structure that the operands hide, joined.
  Structure JointStructure() const;
  TableLines JointLines() const;
  std::set<std::string> JointHiders() const;
  // Returns the integers that the results are, moved at most.
  std::string JointIds() const;
  // Returns the integers that the results are some of.
  std::string JointPlaces() const;
  bool JointByData() const;
  // `result`: the node's, in which padding is known.
  bool MayHideByData(const AxisFlowValue& result) const;
  // Padding of the results follows from the operands' padding and from weights.
  bool IsSettled() const;

  AxisFinding finding_;
  bool makes_mask_ = false;  // a result was said to be one
};

// Equal, Less and their kin, between two numbers.
bool IsComparison(absl::string_view op);
// No element of the type is below zero: bool, and the unsigned integers.
bool IsNeverNegative(DType dtype);
// Returns whether the type holds numbers that no model thinks of: floats, and integers of more than
// 16 bits.
bool HoldsLargeNumbers(DType dtype);

// "node '/pool/ReduceMean' (ReduceMean)"; a node without a name goes by its result's name.
std::string AxisNodeName(const Graph& graph, const Node& node);

}  // namespace reprise
