// FactsOf: a decoder's mask, measured: which keys it hides from a new token, and the values that
// it adds to the scores of others.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

struct MaskFacts {
  int64_t visible = 0;        // the number of last keys that are seen; others are hidden
  std::vector<float> slopes;  // one a head: the value added to a key for each position that it
                              // comes later; or empty: all get the same
  // A head has `span` numbers: a key that comes n positions before the query gets
  // number n, and an earlier one gets the last. Empty: a line by `slopes`, or the same
  // for all.
  std::vector<float> biases;
  int64_t span = 0;
  friend bool operator==(const MaskFacts&, const MaskFacts&) = default;
};

// Returns the mask of a reprise.Attention of one query a row: bools, or numbers that are added,
// which broadcasts to [rows, heads, 1, keys]. UNIMPLEMENTED where it hides other keys than those
// before a window.
absl::StatusOr<MaskFacts> FactsOf(const Tensor& mask, int64_t heads, int64_t keys);

// Returns whether the mask of a reprise.Attention of one row, which broadcasts to [1, heads,
// queries, keys], hides from each query the keys that come after it; the last query and the last
// key are the same token.
bool HidesLaterKeys(const Tensor& mask, int64_t queries, int64_t keys);

}  // namespace reprise
