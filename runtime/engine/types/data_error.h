// FirstDataError: the first datum of a replay that a kernel could not use, such as an index out of
// range.
//
// Filled by kernels during a replay, from several threads at once and without allocating; read
// afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

struct DataError {
  int input = -1;  // position among the recipe's inputs that it comes from; or as IndexSource says
  bool moved = false;  // the input holds the value itself
  int64_t value = 0;
  int64_t low = 0;
  int64_t high = 0;
  std::string place;     // "operand 1 of CumSum 'sum'"
  absl::Status failure;  // not OK: a launch failed as a whole, and nothing above is set
};

// Returns "value 99999 is out of range [-30522, 30521]"; of a launch that failed, why it did.
std::string RangeText(const DataError& error);
// Returns the status for a wrong value, with `what` as its sender: INVALID_ARGUMENT, or the status
// of the launch that failed.
absl::Status ErrorOf(const DataError& error, absl::string_view what);

class FirstDataError final : public ReplayErrors {
 public:
  explicit FirstDataError(const Recipe& recipe) : recipe_(recipe) {}

  void Report(int launch, int operand, int64_t element, int64_t value, int64_t low,
              int64_t high) override;
  void Fail(int launch, const absl::Status& status) override;

  bool any() const { return taken_; }
  // Returns whether a launch failed as a whole: no request has its answer then.
  bool failed() const { return failed_; }
  // Returns nullptr when there was none. After the replay, by one thread.
  const DataError* get();

 private:
  const Recipe& recipe_;
  std::atomic<bool> taken_{false};
  std::atomic<bool> failed_{false};
  int launch_ = -1;
  int operand_ = -1;
  DataError error_;
};

}  // namespace reprise
