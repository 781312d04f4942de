// Hello: the first message of a connection between ranks.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/ranks/rank_group.h"

namespace reprise {

// Lines `name value`, in any order. A connection for messages has the same token as the one for
// signs of life that comes after it.
struct RankHello {
  bool is_watched = false;  // else the connection is for messages
  std::string token;
  int rank = 0, ranks = 0;
  RankIdentity identity;

  std::string Text() const;
  // INVALID_ARGUMENT where `text` is no hello.
  static absl::StatusOr<RankHello> Parse(absl::string_view text);
};

// Answers of rank 0: `kRankComplete` when all ranks are there, else a reason.
inline constexpr char kRankComplete[] = "complete";
inline constexpr size_t kMostHello = 4096;

}  // namespace reprise
