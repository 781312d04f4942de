// The part of Generator that takes the scores of a step: tokens are drawn, told, and answers end.
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/sequence_pages.h"

namespace reprise {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

// Finishes the step. An item that finds no memory ends its sequence alone.
void Generator::FinishStep(const PlannedStep& step, absl::Span<float> scores) {
  const auto width = static_cast<size_t>(vocabulary_);
  const auto finish = [&](const StepItem& item, absl::Span<float> of_item) {
    Sequence& sequence = *item.sequence;
    if (!sequence.draft.empty()) return CheckDraft(sequence, of_item);
    if (sequence.scores_prompt()) ScorePrompt(sequence, of_item);
    sequence.computed += item.count;
    RegisterPages(sequence, *pages_);
    if (item.picks == 0 || sequence.missing() > 0) return;
    const absl::Span<float> last = of_item.subspan(of_item.size() - width, width);
    SequenceRequest& request = *sequence.request;
    if (request.group.has_value()) return Offer(sequence, last);
    if (!request.forked && request.asked.sampling.n > 1) Fork(sequence, last);
    request.forked = true;
    Draw(sequence, last);
  };
  size_t begin = 0;
  for (const StepItem& item : step.items) {
    const absl::Span<float> of_item =
        scores.subspan(begin, static_cast<size_t>(item.picks) * width);
    begin += of_item.size();
    if (item.sequence->request == nullptr) continue;  // Another beam has ended all.
    const absl::Status finished = WithinMemory([] { return "a token"; },
                                               [&] {
                                                 finish(item, of_item);
                                                 return absl::OkStatus();
                                               });
    if (!finished.ok()) End(*item.sequence, Ending::kError, finished);
  }
}

void Generator::ScorePrompt(Sequence& sequence, absl::Span<const float> scores) {
  SequenceRequest& request = *sequence.request;
  if (request.scored == 0) {
    request.prompt_scores.push_back({.id = sequence.tokens[0]});
    request.scored = 1;
  }
  const auto width = static_cast<size_t>(vocabulary_);
  const auto rows = static_cast<int64_t>(scores.size() / width);
  for (int64_t row = 0; row < rows; ++row) {
    const absl::Span<const float> own = scores.subspan(static_cast<size_t>(row) * width, width);
    const std::optional<WatchedId>& watched = request.asked.watched;
    if (watched.has_value() && watched->place == sequence.computed + row &&
        watched->id < vocabulary_) {
      request.watched = sequence.sampler->Score(own, watched->id).logprob;
    }
    // The scores of row n are about token n + 1. Some were told before pages were taken.
    const int64_t place = sequence.computed + row + 1;
    if (place >= sequence.prompt() || place != request.scored) continue;
    request.prompt_scores.push_back(
        sequence.sampler->Score(own, sequence.tokens[static_cast<size_t>(place)]));
    ++request.scored;
  }
}

void Generator::CheckDraft(Sequence& sequence, absl::Span<float> scores) {
  const std::vector<int64_t> draft = std::exchange(sequence.draft, {});
  const auto width = static_cast<size_t>(vocabulary_);
  size_t right = 0;
  for (size_t row = 0; row <= draft.size(); ++row) {
    ++sequence.computed;
    RegisterPages(sequence, *pages_);
    Draw(sequence, scores.subspan(row * width, width));
    // Keys and values after the last right token are overwritten later, and not read before.
    if (row == draft.size() || sequence.request == nullptr) break;
    if (sequence.tokens.back() != draft[row]) break;
    ++right;
  }
  const auto drafted = static_cast<int64_t>(draft.size());
  Speculation::Checked(sequence, drafted, static_cast<int64_t>(right));
  counts_.drafts_right += static_cast<int64_t>(right);
  counts_.drafts_wrong += drafted - static_cast<int64_t>(right);
}

void Generator::Fork(Sequence& sequence, absl::Span<const float> scores) {
  const std::shared_ptr<SequenceRequest> request = sequence.request;
  fork_scores_.assign(scores.begin(), scores.end());
  std::vector<float> own;
  request->forked = true;
  request->open_answers = request->asked.sampling.n;
  std::vector<SequencePtr> others;
  for (int64_t answer = 1; answer < request->asked.sampling.n; ++answer) {
    SequencePtr other = NewSequence(request, answer);
    SharePages(sequence, *other, *pages_);
    others.push_back(std::move(other));
  }
  for (SequencePtr& other : others) {
    if (other->missing() > 0) {
      // Without a page for a copy the end of the prompt is computed again.
      DropPages(*other, *pages_);
      PutBack(std::move(other));
      continue;
    }
    Sequence& begun = *other;
    const auto place =
        absl::c_find_if(running_, [&](const SequencePtr& one) { return IsSooner(*other, *one); });
    running_.insert(place, std::move(other));
    own = fork_scores_;
    Draw(begun, absl::MakeSpan(own));
  }
}

void Generator::Draw(Sequence& sequence, absl::Span<float> scores) {
  const std::optional<int64_t> forced = ForcedNext(sequence);
  if (!forced.has_value()) {
    for (const int64_t id : NeverNext(sequence)) scores[static_cast<size_t>(id)] = kNever;
  }
  absl::StatusOr<SampledToken> token =
      sequence.sampler->Draw(scores, forced, sequence.constraint.get());
  if (!token.ok()) return End(sequence, Ending::kError, token.status());
  if (token->id >= id_rows_) {
    return End(sequence, Ending::kError,
               absl::DataLossError(absl::StrCat("the model drew id ", token->id,
                                                ", and its own ids are below ", id_rows_)));
  }
  const int64_t now = engine_.options().clock->NowNs();
  if (sequence.last_token_ns == 0) {
    options_.events.on_first_token(now - sequence.request->start_ns);
  } else {
    options_.events.on_token(now - sequence.last_token_ns);
  }
  sequence.last_token_ns = now;
  ++counts_.generated_tokens;
  sequence.tokens.push_back(token->id);
  bool stops = sequence.sampler->IsStop(token->id);
  const GenerationRequest& asked = sequence.request->asked;
  if (!stops && asked.ends != nullptr) stops = asked.ends(sequence.answer, *token);
  if (sequence.constraint != nullptr && !forced.has_value()) {
    const absl::StatusOr<bool> complete = sequence.constraint->Take(token->id);
    if (!complete.ok()) return End(sequence, Ending::kError, complete.status());
    stops = stops || *complete;
  }
  const bool ends = sequence.drawn() >= sequence.request->asked.sampling.max_tokens ||
                    static_cast<int64_t>(sequence.tokens.size()) >= context_;
  std::vector<SampledToken> tokens = {*std::move(token)};
  if (stops || ends) {
    return End(sequence, stops ? Ending::kStop : Ending::kLength, absl::OkStatus(),
               std::move(tokens));
  }
  Tell(sequence, {.tokens = std::move(tokens)});
}

void Generator::Tell(Sequence& sequence, GenerationEvent event) {
  event.answer = sequence.answer;
  event.cached_tokens = sequence.request->cached_tokens;
  event.wait = sequence.request->wait;
  event.prompt = std::exchange(sequence.request->prompt_scores, {});
  event.watched = std::exchange(sequence.request->watched, std::nullopt);
  if (sequence.request->asked.counts_unread) sequence.request->handle->AddUnread(1);
  sequence.request->asked.on_event(event);
}

void Generator::End(Sequence& sequence, Ending finish, const absl::Status& status,
                    std::vector<SampledToken> tokens) {
  if (sequence.request == nullptr) return;
  if (sequence.request->group.has_value()) {
    return EndBeams(std::shared_ptr<SequenceRequest>(sequence.request), status);
  }
  DropPages(sequence, *pages_);
  // An error before the other answers have begun ends all of them.
  const bool last = --sequence.request->open_answers <= 0;
  Tell(sequence, {.tokens = std::move(tokens), .finish = finish, .status = status, .last = last});
  sequence.request = nullptr;
}

}  // namespace reprise
