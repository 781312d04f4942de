// StridedView: which element of a source tensor each element of a reshaped and transposed one is.
//
// Exporters move heads about in many ways: one Transpose or two, through three dims or four, with
// Squeeze and Split between. Followed as a view, each such chain is a list of (size, stride) pairs
// over the source, and two chains do the same exactly when their merged lists are equal.
#pragma once

#include <optional>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

class StridedView {
 public:
  struct Atom {
    int64_t size;
    int64_t stride;  // counted in elements of the source
    friend bool operator==(const Atom&, const Atom&) = default;
  };

  // Returns the dense row-major tensor of `shape` itself. No size may be 0.
  static StridedView Dense(absl::Span<const int64_t> shape);
  // Dims with the strides given.
  static StridedView Strided(absl::Span<const Atom> dims);

  // Returns the view through one node (Reshape, Transpose, Gather of one index, Split, Slice along
  // one dim) whose input 0 this is and whose output is `output`; nullopt for other nodes, and where
  // the result is no view.
  std::optional<StridedView> Through(const Graph& graph, NodeId node, ValueId output) const;
  std::optional<StridedView> Reshaped(absl::Span<const int64_t> shape) const;
  StridedView Transposed(absl::Span<const int64_t> perm) const;
  // Elements [start, start + size) of dim `axis`.
  std::optional<StridedView> Sliced(int64_t axis, int64_t start, int64_t size) const;

  // Returns the first element's place in the source.
  int64_t offset() const { return offset_; }
  // Returns the elements in row-major order as the shortest list of atoms; sizes of 1 are left out.
  std::vector<Atom> Merged() const;
  // Row-major order is the source's own.
  bool IsDense() const;

 private:
  std::vector<std::vector<Atom>> dims_;  // outermost atom first; empty for a size of 1
  int64_t offset_ = 0;
};

}  // namespace reprise
