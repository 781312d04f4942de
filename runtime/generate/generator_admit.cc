// The part of Generator that decides which sequences are computed: requests come, get pages, and
// are preempted.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/sequence_pages.h"

namespace reprise {

void Generator::TakeRequests() {
  std::vector<SequencePtr> taken;
  {
    MutexLock lock(mutex_);
    taken.swap(submitted_);
  }
  for (SequencePtr& sequence : taken) waiting_.push_back(std::move(sequence));
  const int64_t now = engine_.options().clock->NowNs();
  const auto look = [&](Sequence& sequence) {
    if (sequence.request == nullptr) return;  // Another beam has ended all.
    if (sequence.request->handle->cancelled()) {
      return End(sequence, Ending::kError, absl::CancelledError("the request was cancelled"));
    }
    const int64_t deadline = sequence.request->asked.deadline_ns;
    if (deadline > 0 && now > deadline) {
      End(sequence, Ending::kError,
          absl::DeadlineExceededError("the deadline has passed before the last token"));
    }
  };
  for (const SequencePtr& sequence : running_) look(*sequence);
  for (const SequencePtr& sequence : waiting_) look(*sequence);
  for (const SequencePtr& sequence : stalled_) look(*sequence);
  EraseEnded();
  MoveStalled();
  EraseEnded();
  Age(now);
}

void Generator::EraseEnded() {
  const auto ended = [](const SequencePtr& one) { return one->request == nullptr; };
  std::erase_if(running_, ended);
  std::erase_if(waiting_, ended);
  std::erase_if(stalled_, ended);
}

void Generator::Admit() {
  while (!waiting_.empty()) {
    const auto next =
        std::min_element(waiting_.begin(), waiting_.end(),
                         [](const SequencePtr& a, const SequencePtr& b) { return IsNext(*a, *b); });
    const std::shared_ptr<KeyShare> share = (*next)->request->share;
    const bool full = static_cast<int64_t>(running_.size()) >= options_.max_running;
    if (full || !Begin(**next)) {
      const bool ended = !full && (*next)->request == nullptr;
      if (ended) EraseEnded();
      if (ended || MakeWay(*share)) continue;
      return;
    }
    SequencePtr sequence = std::move(*next);
    waiting_.erase(next);
    ++share->running;
    const auto place = absl::c_find_if(
        running_, [&](const SequencePtr& one) { return IsSooner(*sequence, *one); });
    running_.insert(place, std::move(sequence));
  }
}

int64_t Generator::PagesToTheEnd(const Sequence& sequence) const {
  const int64_t positions = pages_->options().positions;
  const int64_t left = sequence.request->asked.sampling.max_tokens - sequence.drawn();
  const int64_t end = std::min(context_, static_cast<int64_t>(sequence.tokens.size()) + left);
  const int64_t all = (end + positions - 1) / positions;
  return std::max<int64_t>(0, all - static_cast<int64_t>(sequence.pages.size())) +
         CrossPagesMissing(sequence);
}

int64_t Generator::PagesToGoOn(const Sequence& sequence) const {
  const int64_t all =
      static_cast<int64_t>(sequence.tokens.size()) / pages_->options().positions + 1;
  return std::max<int64_t>(0, all - static_cast<int64_t>(sequence.pages.size())) +
         CrossPagesMissing(sequence);
}

bool Generator::Begin(Sequence& sequence) {
  // A sequence that has lost its place keeps its pages where no other lacked them.
  const bool anew = sequence.pages.empty();
  // One that was computed in vain before waits until there is room for all that it and the others
  // may take.
  const bool to_the_end = sequence.set_back > 0;
  const auto pages_for = [&](const Sequence& one) {
    return to_the_end ? PagesToTheEnd(one) : PagesToGoOn(one);
  };
  int64_t others = 0;
  for (const SequencePtr& other : running_) others += pages_for(*other);
  const auto left = [&] { return pages_->available() - others; };
  const auto has_room = [&](int64_t wanted) {
    while (wanted > left()) {
      if (!Reclaim(sequence)) return false;
    }
    return true;
  };
  // A sequence takes at least the page of its last token, whichever pages of its prompt are
  // found, and the result of a lookup stands until pages are registered or forgotten.
  const int64_t least = sequence.looked_up == pages_->changes() ? sequence.lacked : int64_t{1};
  if (anew && !running_.empty() && !has_room(least)) return false;
  const int64_t before = pages_->available();
  if (anew && !sequence.scores_prompt()) FindPrefix(sequence, *pages_);
  // Found pages without a holder are taken from the available ones.
  const int64_t found = before - pages_->available();
  sequence.lacked = pages_for(sequence) + found;
  sequence.looked_up = pages_->changes();
  if (running_.empty() || has_room(sequence.lacked - found)) {
    if (encoder_ != nullptr && anew && !Encode(sequence)) return false;
    if (!anew) return true;
    counts_.cached_tokens += sequence.computed;
    if (sequence.set_back == 0 && sequence.drawn() == 0 && sequence.answer == 0) {
      SequenceRequest& request = *sequence.request;
      request.cached_tokens = sequence.computed;
      request.wait.ns = engine_.options().clock->NowNs() - request.start_ns;
    }
    return true;
  }
  if (anew) DropPages(sequence, *pages_);
  return false;
}

Sequence* Generator::Youngest() const {
  Sequence* youngest = nullptr;
  for (const SequencePtr& one : running_) {
    if (one->request == nullptr || (one->pages.empty() && !one->holds_cross)) continue;
    if (youngest == nullptr || IsNext(*youngest, *one)) youngest = one.get();
  }
  return youngest;
}

void Generator::SetBack(Sequence& sequence) {
  DropPages(sequence, *pages_);
  ++sequence.set_back;
  ++counts_.set_backs;
  dropped_.push_back(&sequence);
}

bool Generator::MakeRoom(Sequence& sequence, int64_t count) {
  const int64_t positions = pages_->options().positions;
  const int64_t wanted = (sequence.computed + count + positions - 1) / positions;
  while (static_cast<int64_t>(sequence.pages.size()) < wanted) {
    if (const PageId page = TakePage(sequence); page != kNoPage) {
      sequence.Keep(page, *pages_);
      continue;
    }
    Sequence* const youngest = Youngest();
    if (youngest == nullptr) return false;
    SetBack(*youngest);
    if (youngest == &sequence) return false;
  }
  return true;
}

int64_t Generator::RoomForDraft(Sequence& sequence, int64_t wanted) {
  const int64_t positions = pages_->options().positions;
  const auto room = [&] {
    return static_cast<int64_t>(sequence.pages.size()) * positions - sequence.computed - 1;
  };
  // Others need a page each before long.
  if (room() < wanted && pages_->available() > static_cast<int64_t>(running_.size())) {
    if (const PageId page = pages_->Take(); page != kNoPage) sequence.Keep(page, *pages_);
  }
  return std::min(wanted, room());
}

StepLimits Generator::Limits() const {
  const int64_t going_on =
      absl::c_count_if(running_, [](const SequencePtr& one) { return one->continues(); });
  const int64_t most = recipes().most_tokens();
  return {.tokens = most,
          .stalling_tokens =
              step_times_.MoreWithin(going_on, options_.max_stall_ns, kLeastPromptTokens, most),
          .picks = options_.max_running};
}

}  // namespace reprise
