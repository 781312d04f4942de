// How the items of a launch are divided among its parts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reprise::cpu {

// Returns the first of `count` items of part `part` of `parts`; for part + 1: the end. Where there
// are fewer items than parts the first part has one: the priming of a launch relies on that.
inline int64_t FirstOfPart(int64_t count, int part, int parts) {
  return (count * part + parts - 1) / parts;
}

// Items [begin, end) of `count` that part `part` of `parts` does, in multiples of `grain`.
struct ItemRange {
  int64_t begin;
  int64_t end;
};
inline ItemRange RangeOfPart(int64_t count, int64_t grain, int part, int parts) {
  const int64_t grains = (count + grain - 1) / grain;
  return {std::min(count, FirstOfPart(grains, part, parts) * grain),
          std::min(count, FirstOfPart(grains, part + 1, parts) * grain)};
}

}  // namespace reprise::cpu
