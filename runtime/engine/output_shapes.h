// OutputShape: the true size of an output at any sizes of the axes.
//
// Found when the model is loaded by specialising it at several bindings: almost always each dim is
// an affine function of the axes, `batch`, `2 * sequence + 1`. Where it is not, the caller
// specialises at the request's own binding.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/shape.h"
#include "runtime/passes/specialize.h"

namespace reprise {

struct AffineDim {
  int64_t constant = 0;
  std::vector<int64_t> factors;  // by axis

  int64_t At(absl::Span<const int64_t> sizes) const;
  bool MovesWith(size_t axis) const { return factors[axis] != 0; }
  // Exactly the size of `axis`, nothing else.
  bool IsAxis(size_t axis) const;
};

struct OutputShape {
  DType dtype = DType::kUndefined;
  std::vector<AffineDim> dims;
  bool affine = true;  // false: `dims` holds only for the sizes that were tried

  Shape At(absl::Span<const int64_t> sizes) const;
};

// Specialises `graph` around `base` (sizes by axis symbol, in the order of `symbols`; shape inputs
// at their values in `binding`) and fits every output's dims. Errors: what Specialize returns at
// `base` itself.
absl::StatusOr<std::vector<OutputShape>> FitOutputShapes(const Graph& graph,
                                                         const std::vector<std::string>& symbols,
                                                         const Binding& base);

}  // namespace reprise
