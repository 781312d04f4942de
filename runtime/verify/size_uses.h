// SizeUses: how numbers that are made of sizes depend on the size of one axis, as their terms say.
//
// Threads: one; a reading may be shared.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/shapes/size.h"
#include "runtime/shapes/term.h"

namespace reprise {

// The larger the worse.
enum class SizeUse : uint8_t {
  kData,    // it is not made of sizes
  kFixed,   // it does not hang on it; or only how many of it there are does, the first ones alike
  kEven,    // it follows the size so that it differs between any two sizes
  kSteps,   // it follows the size in steps, as quotients do
  kChosen,  // a decision of the size
};

class SizeUses {
 public:
  // `symbol`: the axis. The table of the sizes that it is asked for is open, so that what bounds
  // leave open is in their terms.
  explicit SizeUses(int64_t symbol) : symbol_(symbol) {}

  SizeUse Of(Size size);
  // Returns the largest of them.
  SizeUse OfAny(absl::Span<const Size> sizes);
  // Returns the use of elements, and of their number where that follows in steps or is chosen.
  SizeUse Of(const KnownValue& value);

 private:
  SizeUse OfTerm(const Term& term);
  SizeUse OfChoice(const Term& term);
  // Returns how much the number grows with the axis; another one than 0 where that is not the same
  // everywhere.
  double SlopeOf(Size size);
  SizeUse OfCall(const Term& term);
  // Returns whether `term` is the row that a place falls in, where places of a dim are counted
  // through: a view. The first `times` of such rows end in the table, at another place for any two
  // lengths of rows.
  bool CountsThrough(const Term& term, Size times = 1) const;
  // Returns whether a part of a join begins or ends within the table at all sizes, where a place is
  // `left` before the last one of it: else a size decides whether any of it is seen.
  bool HasItsEnd(Size left) const;

  const int64_t symbol_;
  SizeList dims_;  // the table whose element is asked for
  absl::flat_hash_map<const Term*, SizeUse> known_;
  absl::flat_hash_map<const Term*, SizeUse> in_table_;  // the same, of terms with an index
};

}  // namespace reprise
