#include "runtime/engine/audit/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double DistanceOf(const Tensor& answer, const Tensor& right) {
  if (answer.dtype() != right.dtype() || answer.shape() != right.shape()) return kInfinite;
  if (!IsFloating(right.dtype())) return answer == right ? 0 : kInfinite;
  const std::vector<double> a = answer.ToDoubles(), b = right.ToDoubles();
  double largest = 0, distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      if (std::isfinite(b[i])) largest = std::max(largest, std::abs(b[i]));
      continue;
    }
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return kInfinite;
    largest = std::max(largest, std::abs(b[i]));
    distance = std::max(distance, std::abs(a[i] - b[i]));
  }
  return distance == 0 ? 0 : largest == 0 ? kInfinite : distance / largest;
}

}  // namespace

Difference DifferenceOf(const std::vector<Tensor>& answer, const std::vector<Tensor>& right) {
  Difference worst;
  for (size_t i = 0; i < right.size(); ++i) {
    const double value = DistanceOf(answer[i], right[i]);
    if (value > worst.value) worst = {.value = value, .output = i};
  }
  return worst;
}

}  // namespace reprise
