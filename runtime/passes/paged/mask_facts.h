// FactsOf: a decoder's mask, measured: which keys it hides from a new token, and what it adds to
// the scores of others.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

struct MaskFacts {
  int64_t visible = 0;        // the number of last keys that are seen; others are hidden
  std::vector<float> slopes;  // one a head: what a key gets for each position that it comes later;
                              // or empty: all get the same
  friend bool operator==(const MaskFacts&, const MaskFacts&) = default;
};

// The mask of a reprise.Attention of one query a row: bools, or numbers that are added, which
// broadcasts to [rows, heads, 1, keys]. UNIMPLEMENTED where it is neither a window nor a line.
absl::StatusOr<MaskFacts> FactsOf(const Tensor& mask, int64_t heads, int64_t keys);

}  // namespace reprise
