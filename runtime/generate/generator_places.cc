// The part of Generator that gives places: which sequences run, which give way to others, and
// which keep their pages meanwhile.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/sequence_pages.h"

namespace reprise {
namespace {

// A request that has waited this long goes before all others of its key, whatever its priority.
constexpr int64_t kLongWaitNs = 5'000'000'000;
// The pages of a sequence that goes on are taken this often.
constexpr int64_t kMostSetBacks = 3;

}  // namespace

void Generator::Age(int64_t now_ns) {
  for (const SequencePtr& one : waiting_) {
    if (one->request != nullptr && now_ns - one->request->start_ns > kLongWaitNs) {
      one->request->rank = 0;
    }
  }
}

bool Generator::IsStalled(const Sequence& sequence) const {
  // Beams are told when all have ended.
  return !sequence.request->group.has_value() &&
         sequence.request->handle->unread() >= options_.max_unread;
}

bool Generator::EndIfTakenTooOften(Sequence& sequence) {
  if (sequence.set_back <= kMostSetBacks) return false;
  End(sequence, Ending::kError,
      absl::ResourceExhaustedError(absl::StrCat("the sequence was preempted ", sequence.set_back,
                                                " times: ", pages_->options().max_pages,
                                                " pages are too few for the running sequences")));
  return true;
}

void Generator::MoveStalled() {
  for (auto it = stalled_.begin(); it != stalled_.end();) {
    if (IsStalled(**it)) {
      ++it;
      continue;
    }
    if (!EndIfTakenTooOften(**it)) PutBack(std::move(*it));
    it = stalled_.erase(it);
  }
  for (auto it = running_.begin(); it != running_.end();) {
    if (!IsStalled(**it)) {
      ++it;
      continue;
    }
    stalled_.push_back(std::move(*it));
    it = running_.erase(it);
  }
  // Clients that read nothing for ever keep memory, too.
  for (auto it = stalled_.begin(); it != stalled_.end(); ++it) {
    const auto left = static_cast<int64_t>(stalled_.end() - it);
    if (left <= options_.max_waiting) break;
    End(**it, Ending::kError,
        absl::ResourceExhaustedError(
            absl::StrCat("the client does not read its events, and neither do ", left - 1,
                         " others; at most ", options_.max_waiting, " may do so")));
  }
}

void Generator::PutBack(SequencePtr sequence) { waiting_.push_front(std::move(sequence)); }

void Generator::CountShares() {
  for (const auto& share : present_) share->running = share->sequences = 0;
  const auto count = [&](const std::shared_ptr<KeyShare>& share) {
    share->use.weight = share->weight;
    if (share->use.present == 0) {
      use_of_steps_.Enter(share->use);
      if (share->all_models != nullptr) options_.gate->Enter(*share->all_models);
      present_.push_back(share);
    }
    ++share->sequences;
  };
  for (const SequencePtr& one : waiting_) count(one->request->share);
  for (const SequencePtr& one : running_) {
    count(one->request->share);
    ++one->request->share->running;
  }
  std::erase_if(present_, [&](const std::shared_ptr<KeyShare>& share) {
    if (share->sequences > 0) return false;
    use_of_steps_.Leave(share->use);
    if (share->all_models != nullptr) options_.gate->Leave(*share->all_models);
    return true;
  });
}

bool Generator::BeginTurn() {
  if (present_.empty()) {
    options_.gate->End(*turn_);
    return false;
  }
  std::vector<WeightedShare*> keys;
  for (const auto& share : present_) {
    share->step_tokens = 0;
    keys.push_back(share->all_models);
  }
  options_.gate->Begin(*turn_, keys);
  return true;
}

void Generator::ChargeTurn(int64_t ns) {
  int64_t tokens = 0;
  for (const auto& share : present_) tokens += share->step_tokens;
  std::vector<std::pair<WeightedShare*, int64_t>> times;
  for (const auto& share : present_) {
    // A prompt's encoder computes no tokens of a step.
    const double part = tokens == 0
                            ? 1 / static_cast<double>(present_.size())
                            : static_cast<double>(share->step_tokens) / static_cast<double>(tokens);
    times.emplace_back(share->all_models, static_cast<int64_t>(static_cast<double>(ns) * part));
  }
  options_.gate->Charge(*turn_, times);
}

bool Generator::IsNext(const Sequence& a, const Sequence& b) {
  const KeyShare& share_a = *a.request->share;
  const KeyShare& share_b = *b.request->share;
  const double load_a = share_a.Load(), load_b = share_b.Load();
  if (&share_a != &share_b && load_a != load_b) return load_a < load_b;
  return IsSooner(a, b);
}

bool Generator::MakeWay(const KeyShare& wanting) {
  Sequence* last = nullptr;
  for (const SequencePtr& one : running_) {
    if (one->request->share.get() == &wanting) continue;
    if (last == nullptr || IsNext(*last, *one)) last = one.get();
  }
  if (last == nullptr || wanting.Load(1) >= last->request->share->Load()) return false;
  const std::shared_ptr<SequenceRequest> request = last->request;
  if (request->group.has_value()) {
    // Beams go on together: all of them are computed again later.
    for (const SequencePtr& one : running_) {
      if (one->request == request) SetBack(*one);
    }
    for (Sequence* sequence : std::exchange(dropped_, {})) {
      if (sequence->request != nullptr) WaitAgain(*sequence);
    }
    EraseEnded();
    CountShares();
    return true;
  }
  const auto place =
      absl::c_find_if(running_, [&](const SequencePtr& one) { return one.get() == last; });
  SequencePtr paused = std::move(*place);
  running_.erase(place);
  --request->share->running;
  PutBack(std::move(paused));
  return true;
}

bool Generator::Reclaim(const Sequence& wanting) {
  const auto holds = [&](const SequencePtr& one) {
    return one.get() != &wanting && one->request != nullptr &&
           (!one->pages.empty() || one->holds_cross);
  };
  // The sequence that has stalled for longest, then the one that waits and comes last.
  Sequence* from = nullptr;
  if (const auto found = absl::c_find_if(stalled_, holds); found != stalled_.end()) {
    from = found->get();
    ++from->set_back;
    ++counts_.set_backs;
  } else {
    for (const SequencePtr& one : waiting_) {
      if (holds(one) && (from == nullptr || IsSooner(*from, *one))) from = one.get();
    }
  }
  if (from == nullptr) return false;
  DropPages(*from, *pages_);
  return true;
}

PageId Generator::TakePage(const Sequence& wanting) {
  PageId page = pages_->Take();
  while (page == kNoPage && Reclaim(wanting)) page = pages_->Take();
  return page;
}

}  // namespace reprise
