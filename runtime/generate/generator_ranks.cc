// The part of Generator that computes a model with other ranks.
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/sequence_pages.h"
#include "runtime/recipe/key.h"

namespace reprise {

void Generator::MeetRanks(absl::string_view plan) {
  const ParameterStore& parameters = model_->owner()->parameters();
  const ModelId& id = model_->id();
  const int lane = options_.lane;
  // All that the steps and the pages of ranks must have in common; the first lane compares weights
  // for all.
  const std::string common = absl::StrCat(
      plan, " ", lane == 0 ? parameters.Digest() : "", " ", PrecisionText(model_->key_policy()),
      " ", recipes().most_tokens(), " ", options_.max_running, " ", pages_->options().page_bytes,
      " ", pages_->options().max_pages, " ", context_, " ",
      static_cast<int64_t>(options_.cache_dtype));
  ranks_ = std::make_unique<RankSteps>(options_.ranks->MakeGroup(
      absl::StrCat("'", id.name, "' version ", id.version, lane == 0 ? "" : " lane ",
                   lane == 0 ? "" : absl::StrCat(lane)),
      HexDigest128(common)));
}

bool Generator::KeepWithRanks() {
  if (!ranks_->HaveChanged()) return true;
  const absl::Status state = ranks_->state();
  const absl::Status lost = state.ok() ? RankSteps::Parted() : state;
  for (const auto* sequences : {&waiting_, &stalled_}) {
    for (const SequencePtr& one : *sequences) {
      if (one->request == nullptr) continue;  // Another beam has ended all.
      if (!state.ok() || one->drawn() > 0) End(*one, Ending::kError, lost);
      if (one->request != nullptr) DropPages(*one, *pages_);
    }
  }
  for (const SequencePtr& one : running_) End(*one, Ending::kError, lost);
  EraseEnded();
  pages_->ForgetIdle();
  return state.ok();
}

bool Generator::Follow() {
  auto received = ranks_->Receive();
  // Without links there is nothing to do for some time.
  if (!received.ok()) return absl::IsCancelled(received.status());
  const std::string& message = received->first;
  RankSession& session = *received->second;
  const absl::Status done = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const RankMessage told, ParseRankMessage(message, *pages_));
    if (told.step.items.empty()) {
      pages_->Copy(told.from, told.to);
      return absl::OkStatus();
    }
    return RunOver(told.step, session.exchange.get()).status();
  }();
  // The others wait for this rank's share: they are told that it does not come.
  if (!done.ok()) {
    session.exchange->Break();
    engine_.options().log(
        absl::StrCat("model ", model_->id().name, ": a step of rank 0: ", done.message()));
  } else {
    ++counts_.steps;
  }
  Publish();
  return true;
}

absl::StatusOr<absl::Span<float>> Generator::RunOver(const PlannedStep& step,
                                                     Collective* collective) {
  ASSIGN_OR_RETURN(const absl::Span<float> scores, runner_->Run(step, collective));
  if (options_.events.on_scores != nullptr) options_.events.on_scores(scores);
  return scores;
}

absl::StatusOr<absl::Span<float>> Generator::RunStep(const PlannedStep& step) {
  if (ranks_ == nullptr) return RunOver(step, nullptr);
  ASSIGN_OR_RETURN(const std::shared_ptr<RankSession> session, ranks_->Begin(step));
  absl::StatusOr<absl::Span<float>> scores = RunOver(step, session->exchange.get());
  RETURN_IF_ERROR(ranks_->Check(*session));
  // The other ranks may have computed what this one could not.
  if (!scores.ok()) session->exchange->Break();
  return scores;
}

}  // namespace reprise
