#include "server/text_api/vectors.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

double Dot(absl::Span<const float> a, absl::Span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

absl::StatusOr<std::vector<float>> CutVector(absl::Span<const float> vector,
                                             std::optional<int64_t> dimensions, bool normalize,
                                             bool was_normal) {
  const auto width = static_cast<int64_t>(vector.size());
  const int64_t kept = dimensions.value_or(width);
  if (kept < 1 || kept > width) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"dimensions\" is ", kept, ", the model's vectors have ", width));
  }
  std::vector<float> cut(vector.begin(), vector.begin() + kept);
  if (normalize || (was_normal && kept < width)) {
    const double length = std::sqrt(Dot(cut, cut));
    if (length > 0) {
      for (float& x : cut) x = static_cast<float>(x / length);
    }
  }
  return cut;
}

float Cosine(absl::Span<const float> a, absl::Span<const float> b) {
  const double lengths = std::sqrt(Dot(a, a)) * std::sqrt(Dot(b, b));
  return lengths > 0 ? static_cast<float>(Dot(a, b) / lengths) : 0;
}

float Sigmoid(float x) { return static_cast<float>(1 / (1 + std::exp(-double{x}))); }

std::vector<float> Softmax(absl::Span<const float> x) {
  std::vector<float> shares(x.size());
  if (x.empty()) return shares;
  const float most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const float each : x) sum += std::exp(double{each} - most);
  for (size_t i = 0; i < x.size(); ++i) {
    shares[i] = static_cast<float>(std::exp(double{x[i]} - most) / sum);
  }
  return shares;
}

}  // namespace reprise
