// Speculation: several tokens of a sequence in one step, without a second model.
//
// The last tokens of a sequence may have occurred in it before. The tokens that followed then are a
// guess at the next ones: a draft. A step computes the drafted tokens with the next one, and the
// sampler draws from each row of scores in turn: a draft that equals the drawn token has its
// successor's scores already. Each row depends on the tokens before it alone, so the tokens equal
// those drawn without drafts, to the last bit of their scores.
//
// Drafts are checked where that makes more tokens in the same time: how long steps take by their
// number of tokens is measured, and how often a sequence's drafts were right.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/generate/step_plan.h"

namespace reprise {

// At most `most` tokens that followed the longest of the last tokens' earlier occurrences, and of
// equally long ones the newest. Empty: the last two tokens have not come before.
std::vector<int64_t> FindContinuation(absl::Span<const int64_t> tokens, int64_t most);

class Speculation {
 public:
  // How many tokens after its missing one the pages of `sequence` may hold; may take a page.
  using Room = std::function<int64_t(Sequence& sequence, int64_t wanted)>;

  // `context`: positions of a sequence.
  explicit Speculation(int64_t context) : context_(context) {}

  // Adds drafts to the items of a step that has no prompts.
  void Extend(PlannedStep& step, const StepLimits& limits, const Room& room);
  // Notes that the step took `ns`.
  void Learn(const PlannedStep& step, int64_t ns);
  // Notes that a draft of `drafted` tokens was checked, and its first `right` ones were drawn.
  static void Checked(Sequence& sequence, int64_t drafted, int64_t right);

 private:
  // A step's time by the size of its recipe, a power of two.
  struct Time {
    double ns = 0;
    int64_t learnt = 0;  // the step at which it was
  };
  static constexpr size_t kSizes = 16;

  // 0: not known, or too long ago.
  double TimeOf(int64_t tokens) const;

  const int64_t context_;
  std::array<Time, kSizes> times_;
  int64_t steps_ = 0;
};

}  // namespace reprise
