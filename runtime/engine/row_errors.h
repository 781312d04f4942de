// RowErrors: the data errors of one replay, by row of the batch.
//
// Filled by kernels during a replay, from several threads at once and without allocating; read
// afterwards. Keeps the first error of each row.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/recipe/recipe.h"

namespace reprise {

class RowErrors final : public ReplayErrors {
 public:
  // `rows`: rows of the recipe, the size of its batch axis; 1 where it has none.
  RowErrors(const Recipe& recipe, int64_t rows) : recipe_(recipe), errors_(rows) {}

  struct Error {
    int input = -1;  // position among the recipe's inputs; -1 unknown
    int64_t value = 0;
    int64_t low = 0;
    int64_t high = 0;
  };

  void Report(int launch, int operand, int64_t element, int64_t value, int64_t low,
              int64_t high) override;

  bool any() const { return any_.load(std::memory_order_relaxed); }
  // The first error of rows [begin, begin + count), or nullptr. An error whose row is not known
  // counts for every row.
  const Error* Find(int64_t begin, int64_t count) const;

 private:
  struct Slot {
    std::atomic<bool> taken{false};
    Error error;
  };

  const Recipe& recipe_;
  std::vector<Slot> errors_;
  Slot unknown_row_;
  std::atomic<bool> any_{false};
};

// "value 99999 is out of range [-30522, 30521]".
std::string RangeText(const RowErrors::Error& error);

}  // namespace reprise
