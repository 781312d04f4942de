// Collective: the other ranks that compute the same replay, each a share of it.
//
// Every rank runs the same launches in the same order, so that the n-th exchange of one is the n-th
// exchange of all. Sums are taken in the order of ranks on each of them: all have equal bits.
//
// Threads: one replay at a time. Errors: none from here. Once a rank is missing, exchanges return
// at once and leave their results unspecified; the owner of the link knows why (runtime/ranks).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace reprise {

class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Adds the `count` floats of all ranks, in the order of ranks; `sum` may be `mine`.
  void AllReduce(const float* mine, float* sum, int64_t count);
  // Joins columns: rank r has [rows, widths[r]], and all get [rows, sum of widths].
  void GatherColumns(const float* mine, float* all, int64_t rows, absl::Span<const int64_t> widths);
  // Gives the `count` floats of rank `root` to all ranks.
  void Broadcast(float* numbers, int64_t count, int root);

  static constexpr int kMostRanks = 16;

 protected:
  // Gives `mine`, bytes[rank()] bytes, to all other ranks. `theirs[r]` then has the bytes[r] bytes
  // of rank r, its own as well, until the next exchange. False: a rank is missing. No rank has more
  // than most_bytes(), a multiple of 64.
  virtual bool Exchange(const std::byte* mine, const size_t* bytes, const std::byte** theirs) = 0;
  virtual size_t most_bytes() const = 0;
};

}  // namespace reprise
