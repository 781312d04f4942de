// MergeSymbols: which symbolic dims of a model's inputs are one axis, and which axis is the batch.
//
// Unnamed dims have one symbol a position (`input_ids:0`). The model is read with a size of its own
// for each symbol (passes/read). A shape rule that refuses two sizes says which ones had to be
// equal: symbols that must be are one axis, one that must be a number is fixed, and one that must
// be a sum of others follows from them. Dims that are expressions over symbols (`past + 1`) are
// derived, never axes; one with a symbol that no dim is by itself (only `past + sequence`, no
// `past`) is a name like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/shape.h"

namespace reprise {

struct Axis {
  std::string symbol;  // the one that stands for its class: a name that the model gave
                       // if there is one, else the first
  std::vector<std::string> symbols;  // all of the class, in order of the inputs
  std::string label;  // `batch`, `sequence` when there is one other axis, else symbol
  bool is_batch = false;
  // A batch of some inputs only, as where texts are compared with pictures: nothing but dim 0, of
  // `[rows, 3, ...]` or `[rows, length]`; or one by name that is another dim of some inputs. Never
  // set where is_batch is.
  bool counts_rows = false;
};

struct MergedSymbols {
  std::vector<Axis> axes;  // the batch first, then in order of the inputs
  std::map<std::string, std::string>
      representative;                    // every symbol not derived -> its axis' symbol
  std::map<std::string, int64_t> fixed;  // symbols that can only have this size: no axes
  // Symbols that follow from others though the model does not say so, as sums of products of those:
  // the length of a mask over past and new tokens, "past + sequence". No axes.
  std::map<std::string, std::string> derived;
  // Symbols that are accepted at 1 beside more rows of the others: of a batch axis that has several
  // (one row for all of them), and those fixed at the size of a constant that they broadcast with.
  std::set<std::string> one_row;
  std::string note;  // empty, or why nothing was merged
  absl::Status
      error;  // why the model refuses the first sizes that were read, where there is a note

  // `dims` with every symbol replaced by its representative, fixed ones by their size.
  std::vector<Dim> Apply(absl::Span<const Dim> dims) const;
};

// `inputs`: the dims of the inputs of `graph`, without those that requests may leave out; no values
// of inputs decide shapes. `may_go_on`: false once no more may be read; what was merged until then
// is not to be relied on. Reads the model once for each symbol that is merged or fixed, and a few
// times more.
//
// A dim 0 that a constant of the model broadcasts with is an axis of its own (its size and 1 are
// taken, and neither can be padded to the other); another dim has the constant's size. Where a
// symbol must be equal to what is no sum of others (a share of a length), nothing is merged and
// `note` says so: requests are taken at their exact sizes.
MergedSymbols MergeSymbols(const Graph& graph, absl::Span<const std::vector<Dim>> inputs,
                           const std::function<bool()>& may_go_on);
// Returns the axes of a model that cannot be read: every symbol is one by itself.
MergedSymbols UnmergedSymbols(absl::Span<const std::vector<Dim>> inputs);

}  // namespace reprise
