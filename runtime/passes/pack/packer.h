// Packer: the walk of PackTokens, node by node. Its rules are in pack_rules.cc, pack_attention.cc,
// pack_pairs.cc, pack_picks.cc and pack_rules_quantize.cc.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/match/mask_range.h"
#include "runtime/passes/pack/pack_forms.h"
#include "runtime/passes/pack/pack_tokens.h"

namespace reprise::pack {

// The model, specialised and fused at two sizes.
struct Twins {
  Graph a, b;
  Sizes at_a, at_b;  // the length of `a` is the longest
};

// Returns whether it is a Slice whose result is the first elements of its operand along each dim.
bool CutsBehindAlone(const Graph& graph, const Node& slice);

class Packer {
 public:
  // Borrows all arguments.
  Packer(const Twins& twins, const Graph& symbolic, const PackOptions& options);

  absl::StatusOr<Graph> Run();

 private:
  // A value of the first graph as a node reads it: the meaning of its dims, and its packed value
  // (kNone until asked for, for a fixed one).
  struct Operand {
    ValueId a = kNone, b = kNone;
    std::vector<DimKind> dims;
    Form form;

    bool given() const { return a != kNone; }
    bool fixed() const { return form.kind == Form::kFixed; }
    bool tokens() const { return form.kind == Form::kTokens; }
    int64_t rank() const { return static_cast<int64_t>(dims.size()); }
    bool has_length() const;
  };
  // A mask of attention that depends on query and key: the sum of a value a token (of the key, and
  // of the query) and a table [heads or 1, longest, longest]; bools are joined by "and".
  struct Pairs {
    ValueId key = kNone;
    ValueId query = kNone;
    ValueId table = kNone;
    bool product = false;  // numbers that are multiplied, not added
    // The sum of both is taken to be no lower than this.
    double lowest = -std::numeric_limits<double>::infinity();
    // The packed mask equals the model's, whatever the keys hold: also for a query from which
    // everything is hidden. Else it may be lower where both hide a key.
    bool exact = true;
    std::optional<Range> range;  // range of the model's numbers, where it is known
  };
  static constexpr ValueId Pairs::*kParts[] = {&Pairs::key, &Pairs::query, &Pairs::table};
  // The node that is looked at, in both graphs.
  struct Site {
    const Node* a = nullptr;
    const Node* b = nullptr;
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;

    const std::string& op() const { return a->op; }
    const Attributes& attributes() const { return a->attributes; }
    bool has(size_t i) const { return i < inputs.size() && inputs[i].given(); }
  };

  absl::Status AddInputs();
  absl::Status AddOutputs();
  void MakeSymbolic();
  // Returns whether node `b` of the second graph cuts a parameter to its length, or gives such a
  // cut parameter another shape, and the first graph, whose length is all of that parameter, does
  // not.
  bool CutsTableOfAll(NodeId b);
  absl::StatusOr<Site> SiteOf(NodeId a, NodeId b) const;
  // Node `a` and the first of `b` that does the same to the same operands, which is taken out of
  // `b`; nodes left out before change the order of the others.
  absl::StatusOr<Site> TakeTwin(NodeId a, std::vector<NodeId>& b) const;
  Operand OperandOf(ValueId a, ValueId b) const;
  absl::Status Refuse(const Site& site, absl::string_view why) const;

  // --- Values of the packed graph. ---
  ValueId PackedOf(const Operand& operand) const { return packed_[operand.a]; }
  void Bind(const Operand& result, ValueId packed) { packed_[result.a] = packed; }
  // Returns a fixed value as it is, the same at all lengths.
  absl::StatusOr<ValueId> Whole(const Site& site, const Operand& operand);
  // Returns a fixed value whose dims of the length are cut from a table: shorter sequences take
  // its first elements.
  absl::StatusOr<ValueId> Table(const Site& site, const Operand& operand);
  // [heads, length, length] of a table by the positions of two tokens; `has_rows`: it is repeated
  // for all rows, which come first.
  absl::StatusOr<ValueId> SquareTable(const Site& site, const Operand& operand, int64_t heads,
                                      bool has_rows);
  // Returns the row that each token finds in a table [length, rest...] (rows before it are equal).
  absl::StatusOr<ValueId> LookUp(const Site& site, const Operand& operand, size_t rest);
  // `operand` as it broadcasts to a value of `dims`, laid out as that one is packed.
  absl::StatusOr<ValueId> Align(const Site& site, const Operand& operand,
                                const std::vector<DimKind>& dims);
  absl::StatusOr<ValueId> AlignFixed(const Site& site, const Operand& operand, const Form& form,
                                     size_t length_at);
  absl::StatusOr<ValueId> Reshape(ValueId packed, const Shape& tail);
  absl::StatusOr<ValueId> Ints(std::vector<int64_t> values);
  // Adds a node whose result 0 is the packed form of result 0 of the site.
  absl::Status Emit(const Site& site, absl::string_view op, std::vector<ValueId> inputs,
                    Attributes attributes);
  absl::Status EmitReshaped(const Site& site, absl::string_view op, std::vector<ValueId> inputs,
                            Attributes attributes);

  // --- Rules. ---
  absl::Status PackNode(const Site& site);
  bool KeepsPlaces(const Site& site) const;
  absl::Status PackFixed(const Site& site);
  absl::Status PackView(const Site& site);
  absl::Status PackElementwise(const Site& site);
  absl::Status PackRotary(const Site& site);
  absl::Status PackPairs(const Site& site);
  absl::Status PackPairsChoice(const Site& site);
  absl::Status PackPairsCast(const Site& site);
  // Returns an operand of such a mask as one.
  absl::StatusOr<Pairs> PairsOf(const Site& site, const Operand& operand);
  // Joins `more` with `total` by the op, if there are both.
  absl::Status Join(absl::string_view op, ValueId more, ValueId& total);
  // Adds `numbers` to `hidden`, which holds `fill` or 0.
  absl::Status JoinChoice(const Pairs& numbers, double fill, Pairs& hidden);
  // `seen` as numbers: 0 where it is `keep`, else `fill`.
  absl::StatusOr<ValueId> Hide(ValueId seen, bool keep, double fill);
  absl::Status PackExpand(const Site& site);
  absl::Status PackTranspose(const Site& site);
  absl::Status PackAlongAxis(const Site& site, int64_t axis);
  absl::Status PackLastDims(const Site& site);
  absl::Status PackProduct(const Site& site);
  absl::Status PackWeightedSum(const Site& site);
  absl::Status PackAttention(const Site& site);
  absl::Status PackRelative(const Site& site);
  absl::Status AttentionMask(const Site& site, int64_t heads, Pairs& mask);
  // Queries, keys and values of a site, one row a token.
  absl::Status AddAttended(const Site& site, std::vector<ValueId>& inputs);
  // Attention whose scores depend on the distance of two tokens by `tables`, four operands; or
  // whose mask also varies with the query.
  absl::Status EmitRelative(const Site& site, std::vector<ValueId> inputs, const Pairs& mask,
                            const std::vector<ValueId>& tables);
  // Says how low the mask gets, where several parts of it are added. Refuses one that may hide keys
  // more deeply than the model does.
  absl::Status TakeMask(const Site& site, const Pairs& mask, Attributes& attributes) const;
  absl::Status PackEmbedding(const Site& site);
  absl::Status PackGather(const Site& site);
  // "first" or "last": the token of a row that lies at `a` in the first graph and at `b` in the
  // second; "" for any other.
  std::string EndOf(std::optional<double> a, std::optional<double> b) const;
  // Returns where a Slice begins along its i-th axis, in the second graph.
  std::optional<double> StartOfTwin(const Site& site, size_t i) const;
  absl::Status PackPick(const Site& site);
  absl::Status PackPlace(const Site& site);
  absl::Status PackSlice(const Site& site);
  absl::Status PackReduce(const Site& site);
  absl::Status PackCumSum(const Site& site);
  absl::Status PackRequestScale(const Site& site);
  absl::Status PackQuantisation(const Site& site);
  absl::Status PackByteTable(const Site& site);

  const Twins& twins_;
  const Graph& symbolic_;
  const PackOptions& options_;
  Graph to_;
  std::vector<ValueId> twin_;    // maps a value of `a`, an input or a result, to its twin in `b`
  std::vector<ValueId> packed_;  // indexed by value of `a`
  std::vector<Operand> alias_;   // indexed by the result of an Expand that repeats rows: its input
  std::vector<Pairs> pairs_;     // indexed by value of `a`
  std::vector<ParameterExprPtr> table_of_;  // indexed by value of `b`: see CutsTableOfAll; or null
  ValueId positions_ = kNone;
  ValueId segments_ = kNone;
  // Where the tokens of each request begin, and its segments; kNone where no node asks.
  ValueId request_tokens_ = kNone;
  ValueId request_rows_ = kNone;
};

}  // namespace reprise::pack
