#include "runtime/engine/types/metrics_triggers.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace reprise {

absl::StatusOr<MetricsTriggers> MetricsTriggers::Parse(absl::string_view text) {
  MetricsTriggers triggers;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view whole = part;
    int64_t seconds = 0;
    if (part == "exit") {
      triggers.at_exit = true;
    } else if (part == "capture") {
      triggers.at_capture = true;
    } else if (absl::ConsumePrefix(&part, "interval:") && absl::ConsumeSuffix(&part, "s") &&
               absl::SimpleAtoi(part, &seconds) && seconds > 0) {
      triggers.interval = std::chrono::seconds(seconds);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", whole, "' is not one of exit, capture and interval:SECONDSs"));
    }
  }
  return triggers;
}

}  // namespace reprise
