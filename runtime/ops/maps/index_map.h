// Index maps: which places of its operands each place of a result is made of, dim by dim (linalg
// calls them indexing maps; systems that shard tensors, factors).
//
// Every row of the op table has one or none (OpFacts::map); elementwise ops and views have theirs
// by their trait. It holds for result 0, and for the dims of other results that are the same. From
// it follow
//
// - which ops keep the rows of a batch apart (recipe/row_rules),
// - which positions of the operands make a position of the result (passes/match/position_operands),
// - how positions of a padded axis flow through the op (ops/axis, MapAxis),
// - what an op of the program's own promises (ops/custom/map_text.h).
//
// `tests/fuzz/obligations --maps` holds each row to its map: what is computed of some places of
// the parallel dims equals the same places of the whole result.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"

namespace reprise {

// How a dim of an operand acts on the dims of the result.
enum class Link : uint8_t {
  kReduced,   // any place of the result may be made of any place of it
  kParallel,  // place i of dim `to` is made of place i alone, wherever it lies and however many
              // there are; or a block of places, where the result has a multiple of them
  kMixed,     // a place of dim `to` may be made of any place, and may follow where it lies
  kWindow,    // a place of dim `to` is made of places near it
  kScan,      // a place of dim `to` is made of the places up to it, or from it on
  kSegment,   // a place of dim `to` is made of places of the same request of a packed replay
};

struct DimLink {
  Link link = Link::kReduced;
  int8_t to = -1;  // dim of result 0; -1: all of them

  friend bool operator==(const DimLink&, const DimLink&) = default;
};

struct IndexMap {
  // By operand, then by dim; empty for an operand that is left out.
  std::vector<std::vector<DimLink>> operands;
  // Words for the work along dims that are not parallel: "takes statistics over".
  absl::string_view how = "computes with all of";

  // Returns the dim of operand `i` that acts on dim `to` of the result; -1: none.
  int64_t DimTo(size_t i, int64_t to) const;
  // Returns whether each place along dim `to` of the result is made of the same place of operands
  // that have such a dim, one of them at least, and of nothing that lies along `to` otherwise.
  bool IsParallel(int64_t to) const;

  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

// Returns the map of `node`; nullopt: nothing is known. `graph`: specialised.
std::optional<IndexMap> IndexMapOf(const Graph& graph, const Node& node);

// One node while its rule makes its map. At first all dims are reduced.
class MapContext {
 public:
  // Borrows both. The shapes of operands and of result 0 are known.
  MapContext(const Graph& graph, const Node& node);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  size_t num_inputs() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return node_.input(i) != kNone; }
  bool has_output(size_t i) const { return node_.output(i) != kNone; }
  const Shape& shape(size_t i) const;
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  const Shape& out() const { return *graph_.value(node_.outputs[0]).shape; }
  int64_t out_rank() const { return static_cast<int64_t>(out().size()); }
  // Returns the elements of an operand that is a constant of integers.
  std::optional<std::vector<int64_t>> integers(size_t i) const;
  // Returns the elements of an operand that is a constant.
  std::optional<std::vector<double>> numbers(size_t i) const;
  // Returns attribute `axis`, `fallback` where it is left out, as a dim of operand 0; -1: it is
  // none.
  int64_t Axis(int64_t fallback) const;

  void Set(size_t i, int64_t dim, Link link, int64_t to);
  // Sets dim `dim` of operand `i` parallel to dim `to`.
  void Parallel(size_t i, int64_t dim, int64_t to) { Set(i, dim, Link::kParallel, to); }
  // Sets dims [begin, end) of operand `i` parallel to dims of the result, the first to dim `to`;
  // where the result has another number of places they are mixed.
  void Parallel(size_t i, int64_t begin, int64_t end, int64_t to);
  // Lets all dims of operand `i` act on the last dims of the result, as numpy broadcasts.
  void Broadcast(size_t i);
  // Does the same for all operands.
  void BroadcastAll();
  // Mixes all dims of operand `i` from `begin` on.
  void Mixed(size_t i, int64_t begin);
  // Tells what happens along the other dims: see IndexMap::how.
  void Says(absl::string_view how) { map_.how = how; }
  // Tells that nothing is known.
  void Unknown() { known_ = false; }

  std::optional<IndexMap> Take() &&;

 private:
  const Graph& graph_;
  const Node& node_;
  IndexMap map_;
  bool known_ = true;
};

}  // namespace reprise
