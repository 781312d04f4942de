#include "runtime/engine/data_error.h"

#include "absl/strings/str_cat.h"

namespace reprise {

void FirstDataError::Report(int launch, int operand, int64_t /*element*/, int64_t value,
                            int64_t low, int64_t high) {
  if (taken_.exchange(true)) return;
  const std::vector<int>& sources = recipe_.index_sources[launch];
  error_ = {.input = operand < static_cast<int>(sources.size()) ? sources[operand] : -1,
            .value = value,
            .low = low,
            .high = high};
}

std::string RangeText(const DataError& error) {
  return absl::StrCat("value ", error.value, " is out of range [", error.low, ", ", error.high,
                      "]");
}

}  // namespace reprise
