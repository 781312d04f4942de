#include "runtime/generate/step_plan.h"

#include <algorithm>

namespace reprise {

PlannedStep PlanStep(const std::vector<Sequence*>& running, const StepLimits& limits,
                     const std::function<bool(Sequence&, int64_t count)>& make_room,
                     const std::function<bool(const Sequence&)>& is_dropped) {
  PlannedStep step;
  int64_t left = limits.tokens, picks = limits.picks;
  for (Sequence* sequence : running) {
    if (left == 0 || picks == 0) break;
    if (is_dropped(*sequence) || !sequence->continues() || !make_room(*sequence, 1)) continue;
    step.items.push_back({.sequence = sequence, .count = 1, .picks = 1});
    --left;
    --picks;
  }
  const bool going_on = !step.items.empty();
  if (going_on) left = std::min(left, limits.stalling_tokens);
  std::vector<Sequence*> prompts;
  for (Sequence* sequence : running) {
    if (!is_dropped(*sequence) && !sequence->continues()) prompts.push_back(sequence);
  }
  // The one that has waited longest gets at least half; short ones do not wait for a long one.
  if (!prompts.empty()) {
    std::stable_sort(prompts.begin() + 1, prompts.end(), [](const Sequence* a, const Sequence* b) {
      return a->missing() < b->missing();
    });
  }
  const int64_t first_share = prompts.size() > 1 ? std::max<int64_t>(1, left / 2) : left;
  const auto add = [&](Sequence& sequence, int64_t share) {
    const int64_t count = std::min(share, sequence.missing());
    if (count <= 0 || is_dropped(sequence)) return;
    const bool whole = count == sequence.missing();
    if ((whole && picks == 0) || !make_room(sequence, count)) return;
    step.items.push_back({.sequence = &sequence, .count = count, .picks = whole ? 1 : 0});
    step.prompt_tokens += count;
    step.mixed = going_on;
    left -= count;
    picks -= whole;
  };
  for (size_t i = 0; i < prompts.size(); ++i) add(*prompts[i], i == 0 ? first_share : left);
  // Making room may have taken the pages of sequences that were planned.
  std::erase_if(step.items, [&](const StepItem& item) { return is_dropped(*item.sequence); });
  // The first gets the rest of the budget.
  if (!step.items.empty() && left > 0) {
    for (StepItem& item : step.items) {
      if (prompts.empty() || item.sequence != prompts[0] || item.picks > 0) continue;
      const int64_t more = std::min(left, item.sequence->missing() - item.count);
      const bool whole = item.count + more == item.sequence->missing();
      if (more <= 0 || (whole && picks == 0) || !make_room(*item.sequence, item.count + more)) {
        break;
      }
      item.count += more;
      item.picks = whole ? 1 : 0;
      step.prompt_tokens += more;
      break;
    }
    std::erase_if(step.items, [&](const StepItem& item) { return is_dropped(*item.sequence); });
  }
  for (const StepItem& item : step.items) step.tokens += item.count;
  return step;
}

}  // namespace reprise
