// Which elements of a quantised tensor share a scale.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"
#include "runtime/shapes/size.h"

namespace reprise::ops {

// Which scale an element has: one for all, one a position along the axis, or one a block of it.
template <typename Number>
struct BasicGranularity {
  Number inner;       // elements between two positions along the axis
  Number size;        // positions along the axis
  int64_t block;      // positions that share a scale
  Number scale_size;  // scales along the axis
  bool blocked;

  Number ScaleOf(Number element) const {
    const Number position = element / inner % size;
    if (!blocked) return position / block;
    return (element / inner / size * scale_size + position / block) * inner + element % inner;
  }
};
using Granularity = BasicGranularity<int64_t>;

// Returns the granularity that attributes `axis` (1) and `block_size` of `node` say.
// INVALID_ARGUMENT where a scale of shape `scale` does not fit elements of shape `data`.
absl::StatusOr<Granularity> GranularityOf(const Node& node, const Shape& data, const Shape& scale);
absl::Status CheckGranularity(const Node& node, absl::Span<const Size> data,
                              absl::Span<const Size> scale);

}  // namespace reprise::ops
