#include "runtime/generate/step_times.h"

#include <algorithm>
#include <bit>

namespace reprise {
namespace {

// The share of a mean that a new step gets: of one that took less time for its tokens, or more.
constexpr double kFaster = 0.5, kSlower = 0.1;

}  // namespace

void StepTimes::Learn(int64_t tokens, int64_t ns) {
  if (tokens < 1 || ns < 1) return;
  const auto index = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(tokens - 1)));
  Size& size = sizes_[std::min(index, sizes_.size() - 1)];
  const auto count = static_cast<double>(tokens), time = static_cast<double>(ns);
  if (size.tokens == 0) {
    size = {.tokens = count, .ns = time};
    return;
  }
  const double share = time * size.tokens < size.ns * count ? kFaster : kSlower;
  size.tokens += share * (count - size.tokens);
  size.ns += share * (time - size.ns);
}

double StepTimes::TimeOf(int64_t tokens) const {
  const auto count = static_cast<double>(tokens);
  Size before, after;  // the nearest that are known
  for (const Size& size : sizes_) {
    if (size.tokens == 0) continue;
    if (size.tokens <= count) {
      before = size;
    } else if (after.tokens == 0) {
      after = size;
    }
  }
  if (before.tokens == 0 && after.tokens == 0) return 0;
  double ns = 0;
  if (after.tokens == 0) {
    ns = before.ns * count / before.tokens;
  } else if (before.tokens == 0) {
    ns = after.ns * count / after.tokens;
  } else {
    const double share = (count - before.tokens) / (after.tokens - before.tokens);
    ns = before.ns + share * (after.ns - before.ns);
  }
  // A size that was measured while the machine was busy is not tried again soon: fewer tokens never
  // take longer than more of them, and these no longer for each.
  for (const Size& size : sizes_) {
    if (size.tokens == 0) continue;
    ns = std::min(ns, size.tokens < count ? size.ns * count / size.tokens : size.ns);
  }
  return ns;
}

int64_t StepTimes::MoreWithin(int64_t tokens, int64_t ns, int64_t least, int64_t most) const {
  const double limit = TimeOf(tokens) + static_cast<double>(ns);
  int64_t low = std::min(least, most), high = most;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (TimeOf(tokens + middle) <= limit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace reprise
