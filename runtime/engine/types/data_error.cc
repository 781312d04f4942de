#include "runtime/engine/types/data_error.h"

#include "absl/strings/str_cat.h"
#include "runtime/graph/rank_error.h"

namespace reprise {

void FirstDataError::Report(int launch, int operand, int64_t /*element*/, int64_t value,
                            int64_t low, int64_t high) {
  if (taken_.exchange(true)) return;
  const std::vector<IndexSource>& sources = recipe_.index_sources[launch];
  const IndexSource source =
      operand < static_cast<int>(sources.size()) ? sources[operand] : IndexSource();
  error_ = {.input = source.input, .moved = source.moved, .value = value, .low = low, .high = high};
  launch_ = launch;
  operand_ = operand;
}

void FirstDataError::Fail(int launch, const absl::Status& status) {
  failed_ = true;
  if (taken_.exchange(true)) return;
  error_.failure = status;
  launch_ = launch;
}

const DataError* FirstDataError::get() {
  if (!taken_) return nullptr;
  // Texts are made when the replay is over: a kernel's report allocates nothing.
  const std::string& node = recipe_.launches[launch_].node;
  if (!error_.failure.ok() && error_.place.empty()) {
    error_.failure =
        WithMessage(error_.failure, absl::StrCat(node, ": ", error_.failure.message()));
  }
  error_.place = operand_ < 0 ? node : absl::StrCat("operand ", operand_, " of ", node);
  return &error_;
}

absl::Status ErrorOf(const DataError& error, absl::string_view what) {
  if (!error.failure.ok()) return error.failure;
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", RangeText(error)));
}

std::string RangeText(const DataError& error) {
  if (!error.failure.ok()) return std::string(error.failure.message());
  return absl::StrCat("value ", error.value, " is out of range [", error.low, ", ", error.high,
                      "]");
}

}  // namespace reprise
