#include "runtime/graph/rank_error.h"

#include "absl/strings/cord.h"

namespace reprise {
namespace {

constexpr char kMark[] = "reprise.rank";

}  // namespace

absl::Status RankError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kMark, absl::Cord());
  return status;
}

bool IsRankError(const absl::Status& status) { return status.GetPayload(kMark).has_value(); }

absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  return IsRankError(status) ? RankError(message) : absl::Status(status.code(), message);
}

}  // namespace reprise
