#include "runtime/ops/windows/resize_antialias.h"

#include <algorithm>
#include <cmath>

namespace reprise::ops {
namespace {

// Returns the weight of an element at a distance of `x`: a triangle, or a cubic convolution.
float FilterAt(bool cubic, float a, float x) {
  x = std::abs(x);
  if (!cubic) return std::max(0.0f, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

}  // namespace

std::vector<ResizeTap> WideTaps(int64_t in, float scale, float x, bool cubic, float a,
                                bool exclude) {
  // A dim that grows skips nothing.
  const float narrow = std::min(scale, 1.0f), last = static_cast<float>(in - 1);
  const float start = std::floor((cubic ? -2 : -1) / narrow) + 1;
  const auto count = static_cast<int64_t>(2 - 2 * start);
  const float first = std::ceil(x) - 1 + start;
  std::vector<ResizeTap> taps;
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float at = first + static_cast<float>(i);
    const bool none = exclude && (at < 0 || at > last);
    const float weight = none ? 0 : FilterAt(cubic, a, (at - x) * narrow);
    taps.push_back({static_cast<int64_t>(at > 0 ? std::min(at, last) : 0.0f), weight});
    sum += weight;
  }
  for (ResizeTap& tap : taps) tap.weight /= sum;
  return taps;
}

float RoundingOfIntegers(const Node& node) {
  return node.attributes.Int("antialias", 0) != 0 ? 0.5f : 0.0f;
}

}  // namespace reprise::ops
