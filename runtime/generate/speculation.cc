#include "runtime/generate/speculation.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace reprise {
namespace {

constexpr int64_t kMostDrafted = 7;
constexpr int64_t kLeastMatch = 2;
constexpr int64_t kEnoughMatch = 8;
// The share of drafted tokens that are right where nothing is known yet.
constexpr double kUsualLuck = 0.5;
// A step with drafts must make this many times more tokens in the same time.
constexpr double kLeastGain = 1.05;
// A time that is this many steps old is measured again.
constexpr int64_t kFreshSteps = 512;

size_t SizeIndex(int64_t tokens) {
  return static_cast<size_t>(
      std::bit_width(static_cast<uint64_t>(std::max<int64_t>(tokens, 1)) - 1));
}

// A drafted token, and how likely it is to be right.
struct Guess {
  double chance = 0;
  size_t item = 0;
};

}  // namespace

std::vector<int64_t> FindContinuation(absl::Span<const int64_t> tokens, int64_t most) {
  const auto size = static_cast<int64_t>(tokens.size());
  int64_t best = kLeastMatch - 1, follows = 0;
  for (int64_t end = size - 1; end >= kLeastMatch && best < kEnoughMatch; --end) {
    if (tokens[end - 1] != tokens[size - 1] || tokens[end - 2] != tokens[size - 2]) continue;
    int64_t match = 2;
    while (match < end && match < kEnoughMatch &&
           tokens[end - 1 - match] == tokens[size - 1 - match]) {
      ++match;
    }
    if (match > best) std::tie(best, follows) = std::pair(match, end);
  }
  if (best < kLeastMatch) return {};
  std::vector<int64_t> draft;
  // An occurrence that runs into the end goes on as it began.
  for (int64_t i = 0; i < most; ++i) {
    const int64_t at = follows + i;
    draft.push_back(at < size ? tokens[at] : draft[static_cast<size_t>(at - size)]);
  }
  return draft;
}

double Speculation::TimeOf(int64_t tokens) const {
  const Time& time = times_[std::min(SizeIndex(tokens), kSizes - 1)];
  return time.ns > 0 && steps_ - time.learnt < kFreshSteps ? time.ns : 0;
}

void Speculation::Learn(const PlannedStep& step, int64_t ns) {
  ++steps_;
  if (step.prompt_tokens > 0) return;
  Time& time = times_[std::min(SizeIndex(step.tokens), kSizes - 1)];
  const bool fresh = time.ns > 0 && steps_ - time.learnt < kFreshSteps;
  time.ns = fresh ? 0.8 * time.ns + 0.2 * static_cast<double>(ns) : static_cast<double>(ns);
  time.learnt = steps_;
}

void Speculation::Checked(Sequence& sequence, int64_t drafted, int64_t right) {
  const double share = static_cast<double>(right) / static_cast<double>(drafted);
  sequence.luck = 0.7 * sequence.luck + 0.3 * share;
}

void Speculation::Extend(PlannedStep& step, const StepLimits& limits, const Room& room) {
  const double plain_ns = TimeOf(step.tokens);
  if (step.prompt_tokens > 0 || plain_ns == 0) return;
  const int64_t most = std::min(limits.tokens, limits.picks) - step.tokens;
  if (most <= 0) return;
  std::vector<Guess> guesses;
  for (size_t i = 0; i < step.items.size(); ++i) {
    Sequence& sequence = *step.items[i].sequence;
    const auto size = static_cast<int64_t>(sequence.tokens.size());
    const int64_t wanted =
        std::min({kMostDrafted, context_ - size - 1,
                  sequence.request->asked.sampling.max_tokens - sequence.drawn() - 1});
    sequence.draft.clear();
    if (wanted <= 0 || sequence.request->group.has_value()) continue;
    sequence.draft = FindContinuation(sequence.tokens, wanted);
    double chance = 1;
    for (size_t k = 0; k < sequence.draft.size(); ++k) {
      guesses.push_back({.chance = chance *= sequence.luck, .item = i});
    }
    // One that was wrong for long is tried again some day.
    sequence.luck += 0.02 * (kUsualLuck - sequence.luck);
  }
  if (guesses.empty()) return;
  // The likeliest first; guesses of one sequence stay in their order.
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const Guess& a, const Guess& b) { return a.chance > b.chance; });
  const auto plain = static_cast<double>(step.tokens);
  double best_rate = kLeastGain * plain / plain_ns, expected = plain;
  size_t taken = 0;
  for (size_t count = 1; count <= guesses.size() && static_cast<int64_t>(count) <= most; ++count) {
    expected += guesses[count - 1].chance;
    const int64_t tokens = step.tokens + static_cast<int64_t>(count);
    const double ns = TimeOf(tokens);
    // A size whose time is not known is measured once where it is likely to give one more token.
    const double rate = ns > 0 ? expected / ns : expected / (1.25 * plain_ns);
    if (rate > best_rate) std::tie(best_rate, taken) = std::pair(rate, count);
  }
  std::vector<int64_t> drafted(step.items.size());
  for (size_t i = 0; i < taken; ++i) ++drafted[guesses[i].item];
  for (size_t i = 0; i < step.items.size(); ++i) {
    StepItem& item = step.items[i];
    const int64_t count =
        drafted[i] == 0 ? 0 : std::min(drafted[i], room(*item.sequence, drafted[i]));
    item.sequence->draft.resize(static_cast<size_t>(count));
    item.count += count;
    item.picks += count;
    step.tokens += count;
  }
}

}  // namespace reprise
