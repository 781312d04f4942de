// BatchTarget: the bucket, or the exact sizes, that a batch runs at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/packing/packing.h"

namespace reprise {

// Where a batch runs: buckets along certified axes, exact sizes along the others.
struct BatchTarget {
  std::vector<int64_t> sizes;  // one per axis; packed: tokens and segments
  bool packed = false;
  std::string bucket;     // label, "exact"
  bool exact = false;     // some axis has no bucket: one of many possible sizes
  bool bucketed = false;  // some axis has one
  int64_t tokens = 0;     // elements: rows that requests fill, the other axes with padding
                          // (packed: none)

  PackedSizes packed_sizes() const { return {sizes[0], sizes[1]}; }
};

}  // namespace reprise
