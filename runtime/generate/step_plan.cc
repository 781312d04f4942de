#include "runtime/generate/step_plan.h"

#include <algorithm>
#include <cmath>

namespace reprise {
namespace {

// The prompts of one key, in the order in which they are computed.
struct Lane {
  KeyShare* share = nullptr;
  std::vector<Sequence*> prompts;
};

class Planner {
 public:
  Planner(const StepLimits& limits, const std::function<bool(Sequence&, int64_t)>& make_room,
          const std::function<bool(const Sequence&)>& is_dropped)
      : make_room_(make_room),
        is_dropped_(is_dropped),
        left_(limits.tokens),
        picks_(limits.picks) {}

  void AddGoingOn(const std::vector<Sequence*>& running) {
    for (Sequence* sequence : running) {
      if (left_ == 0 || picks_ == 0) break;
      if (is_dropped_(*sequence) || !sequence->continues() || !make_room_(*sequence, 1)) continue;
      step_.items.push_back({.sequence = sequence, .count = 1, .picks = 1});
      --left_;
      --picks_;
    }
  }

  void AddPrompts(const std::vector<Sequence*>& running, int64_t stalling_tokens) {
    step_.mixed = !step_.items.empty();
    if (step_.mixed) left_ = std::min(left_, stalling_tokens);
    std::vector<Lane> lanes = LanesOf(running);
    double weights = 0;
    for (const Lane& lane : lanes) weights += lane.share->weight;
    const auto budget = static_cast<double>(left_);
    for (const Lane& lane : lanes) {
      const auto part = static_cast<int64_t>(std::ceil(budget * lane.share->weight / weights));
      AddLane(lane, std::min(part, left_));
    }
    // The others share what some leave.
    for (const Lane& lane : lanes) {
      for (Sequence* sequence : lane.prompts) Add(*sequence, left_);
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
  // Returns the lanes, the key that has had the least first.
  std::vector<Lane> LanesOf(const std::vector<Sequence*>& running) const {
    std::vector<Lane> lanes;
    for (Sequence* sequence : running) {
      if (is_dropped_(*sequence) || sequence->continues()) continue;
      KeyShare* const share = sequence->request->share.get();
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](const Lane& one) { return one.share == share; });
      if (lane == lanes.end()) lane = lanes.insert(lanes.end(), Lane{.share = share});
      lane->prompts.push_back(sequence);
    }
    std::stable_sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) {
      return a.share->prompt_tokens < b.share->prompt_tokens;
    });
    // Short ones do not wait for a long one.
    for (Lane& lane : lanes) {
      std::stable_sort(
          lane.prompts.begin() + 1, lane.prompts.end(),
          [](const Sequence* a, const Sequence* b) { return a->missing() < b->missing(); });
    }
    return lanes;
  }

  // Plans a lane: the prompt that has waited longest gets at least half.
  void AddLane(const Lane& lane, int64_t part) {
    const int64_t first = lane.prompts.size() > 1 ? std::max<int64_t>(1, part / 2) : part;
    for (size_t i = 0; i < lane.prompts.size() && part > 0; ++i) {
      part -= Add(*lane.prompts[i], i == 0 ? first : part);
    }
  }

  // Adds up to `most` tokens more of a prompt; returns how many.
  int64_t Add(Sequence& sequence, int64_t most) {
    const auto planned =
        std::find_if(step_.items.begin(), step_.items.end(),
                     [&](const StepItem& item) { return item.sequence == &sequence; });
    const bool is_new = planned == step_.items.end();
    const int64_t before = is_new ? 0 : planned->count;
    const int64_t more = std::min({most, left_, sequence.missing() - before});
    if (more <= 0 || is_dropped_(sequence)) return 0;
    const bool whole = before + more == sequence.missing();
    if ((whole && picks_ == 0) || !make_room_(sequence, before + more)) return 0;
    const StepItem item = {.sequence = &sequence, .count = before + more, .picks = whole ? 1 : 0};
    if (is_new) {
      step_.items.push_back(item);
    } else {
      *planned = item;
    }
    step_.prompt_tokens += more;
    left_ -= more;
    picks_ -= whole;
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
                     const std::function<bool(const Sequence&)>& is_dropped) {
  Planner planner(limits, make_room, is_dropped);
  planner.AddGoingOn(running);
  planner.AddPrompts(running, limits.stalling_tokens);
  PlannedStep step = std::move(planner).Finish();
  for (const StepItem& item : step.items) {
    KeyShare& share = *item.sequence->request->share;
    if (!item.sequence->continues()) {
      share.prompt_tokens += static_cast<double>(item.count) / share.weight;
    }
  }
  return step;
}

}  // namespace reprise
