// The rows that a decoder's attention reads: the rows of a cache and, where a sequence ends, new
// ones.
#pragma once

#include <algorithm>

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.AppendRows(past [B, H, P, D], rows [B, H, S, D], at i64 [B], length i64 [1])
//   -> [B, H, max(P, length), D]: of sequence b the first at[b] rows of the past, then the
// new ones, then zeros. Where at[b] + S exceeds the room, or at[b] the rows of the past, the
// element of `at` is reported and clamped into the range.
Rule AppendRowsRule;
Kernel AppendRowsKernel;

// The rows that are copied for one sequence.
struct AppendedRows {
  int64_t past = 0;   // how many of P
  int64_t added = 0;  // how many of S
  bool fits = true;

  static AppendedRows Of(int64_t at, int64_t past, int64_t added, int64_t length) {
    const int64_t most = std::min(past, length - added);
    return {std::clamp<int64_t>(at, 0, most), added, at >= 0 && at <= most};
  }
};

}  // namespace reprise::ops
