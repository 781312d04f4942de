// SectionSizes: the sizes that sections after a cut are rounded up to, of few.
//
// Counts of several axes would have as many recipes as their buckets have combinations: sizes that
// were given before serve others as well, and counts grow together, within a bound on what they
// waste.
//
// Ownership: value. Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace reprise {

// Returns the smallest bucket of at least `size`: powers of two from 16 on, and half way between
// them.
int64_t SectionBucket(int64_t size);

// Returns the same for the side of a plane, whose cost follows the product of both: the next
// multiple of `step`, or of an eighth of the largest power of two in it.
int64_t PlaneBucket(int64_t size, int64_t step);

class SectionSizes {
 public:
  struct Axis {
    bool padded = false;
    int64_t largest = 0;  // size that it may be padded to
    int64_t step = 1;     // sizes are multiples of it
  };

  // Returns the sizes that `sizes` are rounded up to; those that are not padded stay. `of_plane`:
  // the axes are sides of planes.
  std::vector<int64_t> RoundUp(const std::vector<int64_t>& sizes, const std::vector<Axis>& axes,
                               bool of_plane);
  // Forgets the sizes that were given.
  void Clear() { given_.clear(); }

 private:
  std::vector<std::vector<int64_t>> given_;  // where several axes are padded
};

}  // namespace reprise
