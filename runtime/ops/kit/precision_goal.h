// PrecisionGoal: how close rounded answers stay to the exact ones, where the nodes that round are
// chosen by measuring.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct PrecisionGoal {
  // False: as many nodes as the bound allows round to int8. True: each node that is measured to be
  // faster so rounds to int8 or bf16, whichever takes less time.
  bool fast = false;
  // The least cosine of a rounded answer and the exact one, above 0 and below 1.
  double cosine = 0.999;
  // Measures each node alone even where all may round: for reports.
  bool measure_each = false;

  // Returns the goal of "auto:0.9995", "fast" or "fast:0.9995". INVALID_ARGUMENT, in words that
  // follow the name of a parameter, for any other text.
  static absl::StatusOr<PrecisionGoal> Parse(absl::string_view text);
  // Returns the text that Parse reads.
  std::string ToString() const;
};

}  // namespace reprise
