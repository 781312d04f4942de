// StepTimes: how long steps take by their number of tokens, as measured.
//
// A step reads all weights whatever its tokens are, and few tokens cost little more than that, so
// that time is no multiple of tokens: it is kept for each power of two, and is a line between two
// of these. Steps that take longer than others of their size, since the machine does other things,
// count less than those that take no longer.
//
// Threads: one.
#pragma once

#include <array>
#include <cstdint>

namespace reprise {

class StepTimes {
 public:
  void Learn(int64_t tokens, int64_t ns);
  // Returns the time of a step of `tokens` tokens; 0: nothing is known.
  double TimeOf(int64_t tokens) const;
  // Returns how many tokens more than `tokens` add no more than `ns` to a step, at least `least`
  // and at most `most`.
  int64_t MoreWithin(int64_t tokens, int64_t ns, int64_t least, int64_t most) const;

 private:
  // Steps of up to 2^i tokens, and more than half of that.
  struct Size {
    double tokens = 0, ns = 0;  // means; 0: there was no such step
  };
  std::array<Size, 32> sizes_;
};

}  // namespace reprise
