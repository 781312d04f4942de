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

// A group of units of one cost.
struct CostedUnits {
  int64_t units;
  int64_t cost;  // a unit's
  int64_t next;  // the group after it
};

// Divides the units of groups from 0 to `end` by their costs: every part walks over the groups, and
// calls run(group, first, last) for the units of each that begin in its share.
template <class UnitsOf, class Run>
void ForShareOfCost(int64_t end, int part, int parts, UnitsOf units_of, Run run) {
  int64_t total = 0;
  for (int64_t at = 0; at < end;) {
    const CostedUnits group = units_of(at);
    total += group.units * group.cost;
    at = group.next;
  }
  const int64_t low = FirstOfPart(total, part, parts), high = FirstOfPart(total, part + 1, parts);
  int64_t before = 0;  // the cost of the groups before this one
  for (int64_t at = 0; at < end && before < high;) {
    const CostedUnits group = units_of(at);
    if (group.cost > 0) {
      const auto first_from = [&](int64_t bound) {
        return std::clamp<int64_t>((bound - before + group.cost - 1) / group.cost, 0, group.units);
      };
      const int64_t first = low <= before ? 0 : first_from(low), last = first_from(high);
      if (first < last) run(at, first, last);
    }
    before += group.units * group.cost;
    at = group.next;
  }
}

}  // namespace reprise::cpu
