// FirstDataError: the first datum of a replay that a kernel could not use, such as an index out of
// range.
//
// Filled by kernels during a replay, from several threads at once and without allocating; read
// afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/recipe/recipe.h"

namespace reprise {

struct DataError {
  int input = -1;  // position among the recipe's inputs that it comes from; or as IndexSources says
  int64_t value = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// "value 99999 is out of range [-30522, 30521]".
std::string RangeText(const DataError& error);

class FirstDataError final : public ReplayErrors {
 public:
  explicit FirstDataError(const Recipe& recipe) : recipe_(recipe) {}

  void Report(int launch, int operand, int64_t element, int64_t value, int64_t low,
              int64_t high) override;

  bool any() const { return taken_; }
  // nullptr when there was none. After the replay.
  const DataError* get() const { return taken_ ? &error_ : nullptr; }

 private:
  const Recipe& recipe_;
  std::atomic<bool> taken_{false};
  DataError error_;
};

}  // namespace reprise
