#include "runtime/generate/step_plan.h"

#include <algorithm>
#include <cmath>

namespace reprise {
namespace {

// Sequences of one key, in the order in which they are computed.
struct KeyLane {
  KeyShare* share = nullptr;
  std::vector<Sequence*> sequences;
};

// Groups by key; the key that has had the least comes first.
std::vector<KeyLane> LanesOf(const std::vector<Sequence*>& sequences) {
  std::vector<KeyLane> lanes;
  for (Sequence* sequence : sequences) {
    KeyShare* const share = sequence->request->share.get();
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&](const KeyLane& one) { return one.share == share; });
    if (lane == lanes.end()) lane = lanes.insert(lanes.end(), KeyLane{.share = share});
    lane->sequences.push_back(sequence);
  }
  std::stable_sort(lanes.begin(), lanes.end(), [](const KeyLane& a, const KeyLane& b) {
    return a.share->use.had < b.share->use.had;
  });
  return lanes;
}

// `most` of the sequences, in turns of one token that the key gets which has had the least.
std::vector<Sequence*> TakeTurns(const std::vector<Sequence*>& sequences, size_t most) {
  struct Key {
    KeyLane lane;
    double had;
    size_t next = 0;
  };
  std::vector<Key> keys;
  for (KeyLane& lane : LanesOf(sequences)) {
    const double had = lane.share->use.had;
    keys.push_back({.lane = std::move(lane), .had = had});
  }
  std::vector<Sequence*> taken;
  while (taken.size() < std::min(most, sequences.size())) {
    Key* least = nullptr;
    for (Key& key : keys) {
      const bool done = key.next == key.lane.sequences.size();
      if (!done && (least == nullptr || key.had < least->had)) least = &key;
    }
    taken.push_back(least->lane.sequences[least->next++]);
    least->had += 1 / least->lane.share->use.weight;
  }
  return taken;
}

class Planner {
 public:
  Planner(const StepLimits& limits, const std::function<bool(Sequence&, int64_t)>& make_room,
          const std::function<bool(const Sequence&)>& is_dropped)
      : make_room_(make_room),
        is_dropped_(is_dropped),
        left_(limits.tokens),
        picks_(limits.picks) {}

  void AddGoingOn(const std::vector<Sequence*>& running) {
    std::vector<Sequence*> going_on;
    for (Sequence* sequence : running) {
      if (!is_dropped_(*sequence) && sequence->continues()) going_on.push_back(sequence);
    }
    const auto most = static_cast<size_t>(std::min(left_, picks_));
    if (going_on.size() > most) going_on = TakeTurns(going_on, most);
    for (Sequence* sequence : going_on) {
      if (is_dropped_(*sequence) || !make_room_(*sequence, 1)) continue;
      step_.items.push_back({.sequence = sequence, .count = 1, .picks = 1});
      --left_;
      --picks_;
    }
  }

  void AddPrompts(const std::vector<Sequence*>& running, int64_t stalling_tokens) {
    step_.mixed = !step_.items.empty();
    if (step_.mixed) left_ = std::min(left_, stalling_tokens);
    std::vector<KeyLane> lanes = PromptsOf(running);
    double weights = 0;
    for (const KeyLane& lane : lanes) weights += lane.share->use.weight;
    const auto budget = static_cast<double>(left_);
    for (const KeyLane& lane : lanes) {
      const auto part = static_cast<int64_t>(std::ceil(budget * lane.share->use.weight / weights));
      AddLane(lane, std::min(part, left_));
    }
    // Keys share the tokens that others leave.
    for (const KeyLane& lane : lanes) {
      for (Sequence* sequence : lane.sequences) Add(*sequence, left_);
    }
    if (step_.prompt_tokens == 0) step_.mixed = false;
  }

  PlannedStep Finish() && {
    // Making room may have taken the pages of sequences that were planned.
    std::erase_if(step_.items, [&](const StepItem& item) { return is_dropped_(*item.sequence); });
    for (const StepItem& item : step_.items) step_.tokens += item.count;
    return std::move(step_);
  }

 private:
  std::vector<KeyLane> PromptsOf(const std::vector<Sequence*>& running) const {
    std::vector<Sequence*> prompts;
    for (Sequence* sequence : running) {
      if (!is_dropped_(*sequence) && !sequence->continues()) prompts.push_back(sequence);
    }
    std::vector<KeyLane> lanes = LanesOf(prompts);
    // Short ones do not wait for a long one.
    for (KeyLane& lane : lanes) {
      std::stable_sort(
          lane.sequences.begin() + 1, lane.sequences.end(),
          [](const Sequence* a, const Sequence* b) { return a->missing() < b->missing(); });
    }
    return lanes;
  }

  // Gives the prompt that has waited longest at least half.
  void AddLane(const KeyLane& lane, int64_t part) {
    const int64_t first = lane.sequences.size() > 1 ? std::max<int64_t>(1, part / 2) : part;
    for (size_t i = 0; i < lane.sequences.size() && part > 0; ++i) {
      part -= Add(*lane.sequences[i], i == 0 ? first : part);
    }
  }

  // Adds up to `most` tokens more of a prompt; returns how many.
  int64_t Add(Sequence& sequence, int64_t most) {
    const auto planned =
        std::find_if(step_.items.begin(), step_.items.end(),
                     [&](const StepItem& item) { return item.sequence == &sequence; });
    const bool is_new = planned == step_.items.end();
    const int64_t before = is_new ? 0 : planned->count;
    const bool scored = sequence.scores_prompt();
    const int64_t more =
        std::min({most, left_, sequence.missing() - before, scored ? picks_ : most});
    if (more <= 0 || is_dropped_(sequence)) return 0;
    const bool whole = before + more == sequence.missing();
    if ((whole && picks_ == 0) || !make_room_(sequence, before + more)) return 0;
    const int64_t picks = scored ? more : whole ? 1 : 0;
    const StepItem item = {.sequence = &sequence,
                           .count = before + more,
                           .picks = (is_new ? 0 : planned->picks) + picks};
    if (is_new) {
      step_.items.push_back(item);
    } else {
      *planned = item;
    }
    step_.prompt_tokens += more;
    left_ -= more;
    picks_ -= picks;
    return more;
  }

  const std::function<bool(Sequence&, int64_t)>& make_room_;
  const std::function<bool(const Sequence&)>& is_dropped_;
  int64_t left_, picks_;
  PlannedStep step_;
};

}  // namespace

PlannedStep PlanStep(const std::vector<Sequence*>& running, const StepLimits& limits,
                     const std::function<bool(Sequence&, int64_t count)>& make_room,
                     const std::function<bool(const Sequence&)>& is_dropped, SharedUse& use) {
  Planner planner(limits, make_room, is_dropped);
  planner.AddGoingOn(running);
  planner.AddPrompts(running, limits.stalling_tokens);
  PlannedStep step = std::move(planner).Finish();
  for (const StepItem& item : step.items) {
    KeyShare& share = *item.sequence->request->share;
    use.Serve(share.use, item.count);
    share.step_tokens += item.count;
  }
  return step;
}

}  // namespace reprise
