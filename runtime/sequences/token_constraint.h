// TokenConstraint: which tokens may follow in one answer, beyond the options of a draw.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace reprise {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets the scores of tokens that may not follow to -inf. An error ends the answer.
  virtual absl::Status Restrict(absl::Span<float> scores) = 0;
  // `id` was drawn. Returns whether the answer is complete.
  virtual absl::StatusOr<bool> Take(int64_t id) = 0;
};

}  // namespace reprise
