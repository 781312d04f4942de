#include "runtime/engine/row_errors.h"

#include "absl/strings/str_cat.h"

namespace reprise {

void RowErrors::Report(int launch, int operand, int64_t element, int64_t value, int64_t low,
                       int64_t high) {
  const std::vector<IndexSource>& sources = recipe_.index_sources[launch];
  const IndexSource source =
      operand < static_cast<int>(sources.size()) ? sources[operand] : IndexSource();
  Slot* slot = &unknown_row_;
  if (source.rows == static_cast<int64_t>(errors_.size()) && source.elements_per_row > 0) {
    slot = &errors_[element / source.elements_per_row];
  }
  any_.store(true, std::memory_order_relaxed);
  if (slot->taken.exchange(true)) return;
  slot->error = {.input = source.input, .value = value, .low = low, .high = high};
}

const RowErrors::Error* RowErrors::Find(int64_t begin, int64_t count) const {
  if (!any()) return nullptr;
  for (int64_t row = begin; row < begin + count; ++row) {
    if (errors_[row].taken) return &errors_[row].error;
  }
  return unknown_row_.taken ? &unknown_row_.error : nullptr;
}

std::string RangeText(const RowErrors::Error& error) {
  return absl::StrCat("value ", error.value, " is out of range [", error.low, ", ", error.high,
                      "]");
}

}  // namespace reprise
