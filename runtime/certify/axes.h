// MergeSymbols: which symbolic dims of a model's inputs are one axis, and which axis is the batch.
//
// Unnamed dims have one symbol a position (`input_ids:0`). Symbols that the shape rules force equal
// are one axis; this is found by trying: sizes that differ are refused. A name joins its dims as
// well, unless one input has it twice: see WithoutPlaceholders. Dims that are expressions
// over symbols (`past + 1`) are derived, never axes; one with a symbol that no dim is by itself
// (only `past + sequence`, no `past`) is a name like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
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
  // Symbols of the batch axis, of which it has several, that are accepted at 1 beside more rows of
  // the others: one row for all of them.
  std::set<std::string> one_row;
  std::string note;  // empty, or why merging was given up (more than 10 symbols, sizes refused)

  // Axes whose dims are all that `named` (dims by input) call by one name, those of `unnamed` at
  // their places, get that name back.
  void TakeNames(absl::Span<const std::vector<Dim>> named,
                 absl::Span<const std::vector<Dim>> unnamed);
  // `dims` with every symbol replaced by its representative, fixed ones by their size.
  std::vector<Dim> Apply(absl::Span<const Dim> dims) const;
};

// The dims of `inputs`, with those unnamed (`ids:0`) whose name one input gives to several of its
// dims. Exporters call every dim `dynamic`, `?` or `N`; which of them are equal only the shape
// rules say. A name that stands in an expression is one.
std::vector<std::vector<Dim>> WithoutPlaceholders(absl::Span<const std::string> names,
                                                  absl::Span<const std::vector<Dim>> inputs);

// `accepts(sizes)`: the model specialises at these sizes of all symbols. At most some hundred
// calls, few for real models. Where all-equal sizes are refused, nothing is merged and `note` says
// so.
//
// A symbol that is refused at the size of the others may follow from them: sums and multiples are
// found by trying as well. One that is seen to follow in another way (a share of a length)
// leaves all symbols unmerged, so that requests are taken at their exact sizes.
//
// `constant_sizes`: of what the model's own constants broadcast with, to tell a size that has to be
// 1 from one that may be. A dim 0 that is accepted at 1 and at one of them is an axis of its own
// (neither size can be padded to the other); another dim has the constant's size.
MergedSymbols MergeSymbols(
    absl::Span<const std::vector<Dim>> inputs,
    const std::function<bool(const std::map<std::string, int64_t>&)>& accepts,
    absl::Span<const int64_t> constant_sizes = {});

}  // namespace reprise
