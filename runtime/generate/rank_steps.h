// RankSteps: the steps of one model over several ranks.
//
// Rank 0 plans steps; before it computes one it tells the others, which compute the same one over
// their part of the model. Their pages have the numbers of rank 0's: a page that is found again or
// shared needs no message, and a copy is told. What a rank has computed is lost where one goes:
// rank 0 begins again then, without a page.
//
// Threads: one at a time; state from any. Errors: UNAVAILABLE naming a rank that is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/generate/step_plan.h"
#include "runtime/ranks/rank_group.h"
#include "runtime/sequences/page_pool.h"

namespace reprise {

// Return messages to the other ranks: a step over pages, and a page that is copied.
std::string StepMessage(const PlannedStep& step);
std::string CopyMessage(PageId from, PageId to);

// A message as another rank reads it.
struct RankMessage {
  // Where it is a copy.
  PageId from = kNoPage, to = kNoPage;
  // Else the step, over these sequences: ids to compute and pages alone.
  PlannedStep step;
  std::vector<std::unique_ptr<Sequence>> sequences;
};
// Makes the memory of its pages real. INVALID_ARGUMENT where it is none, or names a page that the
// pool does not have; RESOURCE_EXHAUSTED without memory.
absl::StatusOr<RankMessage> ParseRankMessage(absl::string_view message, PagePool& pool);

class RankSteps {
 public:
  explicit RankSteps(std::shared_ptr<RankGroup> group) : group_(std::move(group)) {}

  bool leads() const { return group_->rank() == 0; }
  // OK while all ranks are there.
  absl::Status state() const { return group_->state(); }
  // Returns whether ranks have gone since the last call, or have come for the first time.
  bool HaveChanged();

  // Rank 0: tells the others of a step. Returns the links that it runs over.
  absl::StatusOr<std::shared_ptr<RankSession>> Begin(const PlannedStep& step);
  // Rank 0: tells of a copied page. Where that fails the next step does, too.
  void Copy(PageId from, PageId to);
  // Another rank: returns the next message, and the links that it came over. CANCELLED: none came
  // for some milliseconds.
  absl::StatusOr<std::pair<std::string, std::shared_ptr<RankSession>>> Receive();
  // Returns OK where all ranks were there until a step was computed.
  absl::Status Check(const RankSession& session) const;
  // Returns why a sequence ends whose ranks are all there, but not those that have computed it.
  static absl::Status Parted();
  // Another rank: returns why it takes no requests.
  absl::Status TakesNone() const;

 private:
  const std::shared_ptr<RankGroup> group_;
  int64_t sessions_ = 0;  // RankGroup::sessions when HaveChanged was last called
};

}  // namespace reprise
