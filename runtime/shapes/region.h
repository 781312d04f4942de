// Region: the sizes for which a reading holds, as the predicates that it has recorded.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/shapes/size.h"

namespace reprise {

class SizeTable;

// The numbers from `low` to `high`; the ends of int64 stand for no end.
struct Interval {
  static constexpr int64_t kNoLow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kNoHigh = std::numeric_limits<int64_t>::max();
  int64_t low = kNoLow;
  int64_t high = kNoHigh;

  Interval Within(const Interval& other) const {
    return {low > other.low ? low : other.low, high < other.high ? high : other.high};
  }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A predicate that holds everywhere in the region.
struct Guard {
  enum class Relation : uint8_t { kEqual, kUnequal, kAtLeast, kAtMost };
  Size form;
  Relation relation = Relation::kEqual;
  int64_t number = 0;
  int64_t origin = -1;  // the node whose rule asked; -1: none

  bool HoldsFor(int64_t value) const;
};

// "sequence >= 2".
std::string GuardText(const Guard& guard);

// Numbers that sizes are at sizes of axes other than the hints.
class SizeEvaluator {
 public:
  // `axes`: a size for each symbol of the table, which outlives this. A symbol without one has its
  // hint.
  SizeEvaluator(const SizeTable& table, const std::map<std::string, int64_t>& axes);

  // Changes the sizes of `axes`; the others stay.
  void Move(const std::map<std::string, int64_t>& axes);
  // Returns nullopt where the number overflows, or a function does not take its operands.
  std::optional<int64_t> At(Size size);
  std::optional<int64_t> At(Size size, absl::Span<const int64_t> indices);
  // Returns whether every guard holds, which makes what the table says true of these sizes.
  bool InRegion();
  // Returns the first size of `symbol` above its size now at which InRegion, which is true now, may
  // be false, the other sizes as they are; Interval::kNoHigh where there is none.
  int64_t EndAlong(const std::string& symbol);

 private:
  std::optional<int64_t> Compute(const Term& term);

  struct Memo {
    uint32_t move = 0;  // the number that `moves_` was
    std::optional<int64_t> value;
  };
  const SizeTable& table_;
  std::vector<int64_t> symbols_;
  std::vector<int64_t> indices_;
  std::vector<Memo> memo_;  // one a term, for those without an index
  uint32_t moves_ = 1;
};

}  // namespace reprise
