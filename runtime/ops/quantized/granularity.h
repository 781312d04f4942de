// Which elements of a quantised tensor share a scale.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise::ops {

// Which scale an element has: one for all, one a position along the axis, or one a block of it.
struct Granularity {
  int64_t inner;       // elements between two positions along the axis
  int64_t size;        // positions along the axis
  int64_t block;       // positions that share a scale
  int64_t scale_size;  // scales along the axis
  bool blocked;

  int64_t ScaleOf(int64_t element) const {
    const int64_t position = element / inner % size;
    if (!blocked) return position / block;
    return (element / inner / size * scale_size + position / block) * inner + element % inner;
  }
};

// The granularity that attributes `axis` (1) and `block_size` of `node` say. INVALID_ARGUMENT where
// a scale of shape `scale` does not fit elements of shape `data`.
absl::StatusOr<Granularity> GranularityOf(const Node& node, const Shape& data, const Shape& scale);

}  // namespace reprise::ops
