// OutputShape: the true size of an output at any sizes of the axes.
//
// Read off the model when it is loaded: almost always each dim is an affine function of the axes,
// `batch`, `2 * sequence + 1`, or of the positions that strides leave of an axis,
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
  // Returns the part of the size that `axis` makes at `size`, beside products.
  int64_t PartOf(size_t axis, int64_t size) const {
    return factors[axis] * ExtentOf(axis).At(size);
  }
  bool MovesWith(size_t axis) const;
  bool Moves() const;
  // Exactly the size of `axis`, nothing else.
  bool IsAxis(size_t axis) const;

  friend bool operator==(const AffineDim&, const AffineDim&) = default;
};

struct OutputShape {
  DType dtype = DType::kUndefined;
  std::vector<AffineDim> dims;

  Shape At(absl::Span<const int64_t> sizes) const;

  friend bool operator==(const OutputShape&, const OutputShape&) = default;
};

struct OutputFit {
  std::vector<OutputShape> outputs;
  std::vector<std::string> refusals;  // per axis: why it cannot be fitted; empty where it was
  // By axis: the smallest size that the model takes. A window, a TopK or a token picked at a known
  // place may want more than 1, which a padded request would seem to have.
  std::vector<int64_t> smallest;
};

// The question about one axis.
struct FitRange {
  int64_t largest = 1;  // size of interest: the fit holds up to it
  int64_t from = 1;     // the smallest size of interest
  int64_t step = 1;     // only multiples of it are of interest (ModelAxis)
  // Extents that values have along it after strides.
  std::vector<Extent> extents;
};

// Reads the shapes of `graph` at `base` (sizes by axis symbol) and in every other region of sizes
// that is met (passes/read), and fits every output's dims to what they say: along each axis at
// every size of interest, while the others stay, and at the ends of several. `multiplies`: the
// parts of two axes may be multiplied; else axes whose parts are are refused. Errors: what
// ReadSizes returns at `base` itself.
absl::StatusOr<OutputFit> FitOutputShapes(const Graph& graph,
                                          const std::vector<std::string>& symbols,
                                          const Binding& base, std::vector<FitRange> ranges,
                                          bool multiplies = false);

}  // namespace reprise
