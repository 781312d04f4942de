#include "server/text_api/vectors.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

double Dot(absl::Span<const float> a, absl::Span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

float Distance(Similarity similarity, absl::Span<const float> a, absl::Span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double apart = double{a[i]} - double{b[i]};
    sum += similarity == Similarity::kManhattan ? std::abs(apart) : apart * apart;
  }
  return static_cast<float>(similarity == Similarity::kManhattan ? sum : std::sqrt(sum));
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

float Compare(Similarity similarity, absl::Span<const float> a, absl::Span<const float> b) {
  switch (similarity) {
    case Similarity::kDot:
      return static_cast<float>(Dot(a, b));
    case Similarity::kEuclidean:
    case Similarity::kManhattan:
      return -Distance(similarity, a, b);
    case Similarity::kCosine:
      break;
  }
  const double lengths = std::sqrt(Dot(a, a)) * std::sqrt(Dot(b, b));
  return lengths == 0 ? 0 : static_cast<float>(Dot(a, b) / lengths);
}

std::vector<size_t> ByScore(absl::Span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (std::isnan(scores[a]) || std::isnan(scores[b]))
      return std::isnan(scores[b]) > std::isnan(scores[a]);
    return scores[a] > scores[b];
  });
  return order;
}

absl::Status CheckFinite(absl::Span<const float> numbers, size_t index, absl::string_view output) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("text ", index, ": number ", i, " of the answer, which the model's output \"",
                     output, "\" gives, is ", numbers[i], "; no such number can be answered"));
  }
  return absl::OkStatus();
}

void WriteBase64(absl::Span<const float> values, JsonWriter& json) {
  json.Value(absl::Base64Escape(
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

void WriteRows(absl::Span<const float> values, int64_t rows, JsonWriter& json) {
  const auto count = static_cast<size_t>(rows);
  const size_t width = count == 0 ? 0 : values.size() / count;
  json.Array([&] {
    for (size_t row = 0; row < count; ++row) json.List(values.subspan(row * width, width));
  });
}

void WriteUsage(int64_t tokens, JsonWriter& json) {
  json.Object("usage", [&] {
    json.Member("prompt_tokens", tokens);
    json.Member("total_tokens", tokens);
  });
}

float Activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGelu:
      return static_cast<float>(0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)));
    case Activation::kSigmoid:
      return Sigmoid(x);
  }
  return x;
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
