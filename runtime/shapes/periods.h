// Numbers that are sums of quotients of one axis, compared at every size of it.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/shapes/size.h"
#include "runtime/shapes/term.h"

namespace reprise {

// Returns the least common multiple, or 0 where it is beyond the longest period that is looked at,
// or one of them is 0.
int64_t CommonPeriod(int64_t a, int64_t b);

// Returns the period of each term, by id: the number of sizes of `axis` after which it has grown by
// the same number each time; 0 where it is no sum of quotients by constants of the axis alone. Two
// terms that agree at all sizes of their common period, and at the next one, agree everywhere.
std::vector<int64_t> PeriodsOf(const SizeTable& table, const Term* axis);

// Returns whether two terms of one table are the same number at every size of `axis`; false where
// that is not known. `periods`: of the table, as PeriodsOf has them.
bool AgreeEverywhere(const SizeTable& table, const Term* axis, const std::vector<int64_t>& periods,
                     Size a, Size b);

}  // namespace reprise
