// MetricsTriggers: when the metrics are written to a file: "exit,capture,interval:10s".
#pragma once

#include <chrono>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct MetricsTriggers {
  bool at_exit = false;
  bool at_capture = false;
  std::chrono::seconds interval{0};  // 0: never

  // Parses the text; INVALID_ARGUMENT names an unknown trigger.
  static absl::StatusOr<MetricsTriggers> Parse(absl::string_view text);
};

}  // namespace reprise
