// OutputShape: the true size of an output at any sizes of the axes.
//
// Found when the model is loaded by specialising it at several bindings: almost always each dim is
// an affine function of the axes, `batch`, `2 * sequence + 1`, or of what strides leave of an axis,
// `floor((sequence - 80) / 320)`. An axis along which a dim is anything else (clipped, squeezed
// away at 1) is refused: it is never padded, and what is not padded needs no rule.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/extent.h"
#include "runtime/graph/node.h"
#include "runtime/graph/shape.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

struct AffineDim {
  int64_t constant = 0;
  std::vector<int64_t> factors;  // per axis; 0 along an axis that was refused
  // Per axis: what the factor multiplies. Empty: the sizes themselves.
  std::vector<Extent> extents;
  // Axes whose parts multiply, as where height and width became one dim.
  struct Product {
    size_t first = 0, second = 0;
    int64_t factor = 0;

    friend bool operator==(const Product&, const Product&) = default;
  };
  std::vector<Product> products;
  // An axis that was refused may move it too: `At` is right about differences alone.
  bool open = false;

  int64_t At(absl::Span<const int64_t> sizes) const;
  Extent ExtentOf(size_t axis) const { return extents.empty() ? Extent() : extents[axis]; }
  // The part of the size that `axis` makes at `size`, beside products.
  int64_t PartOf(size_t axis, int64_t size) const {
    return factors[axis] * ExtentOf(axis).At(size);
  }
  bool MovesWith(size_t axis) const;
  bool Moves() const;
  // Exactly the size of `axis`, nothing else.
  bool IsAxis(size_t axis) const;
};

struct OutputShape {
  DType dtype = DType::kUndefined;
  std::vector<AffineDim> dims;

  Shape At(absl::Span<const int64_t> sizes) const;
};

struct OutputFit {
  std::vector<OutputShape> outputs;
  std::vector<std::string> refusals;  // per axis: why it cannot be fitted; empty where it was
  // By axis: the smallest size that the model takes. A window, a TopK or a token picked at a known
  // place may want more than 1, which a padded request would seem to have.
  std::vector<int64_t> smallest;
};

// Specialises `graph` around `base` (sizes by axis symbol) and fits every output's dims, then looks
// at each axis at `samples` (by axis; sizes that the model does not take are passed over): the
// bucket boundaries, where a rule that is not affine shows. `extents`: by axis, those that its
// values have behind strides; `steps`: the axis is looked at, and fitted, at multiples of its step
// alone (ModelAxis). Both may be empty. `multiplies`: the parts of two axes may be multiplied; else
// axes whose parts are are refused. Sizes are looked at on up to `threads` threads. Errors: what
// Specialize returns at `base` itself.
absl::StatusOr<OutputFit> FitOutputShapes(const Graph& graph,
                                          const std::vector<std::string>& symbols,
                                          const Binding& base,
                                          const std::vector<std::vector<int64_t>>& samples,
                                          const std::vector<std::vector<Extent>>& extents = {},
                                          const std::vector<int64_t>& steps = {},
                                          bool multiplies = false, int threads = 1);

}  // namespace reprise
