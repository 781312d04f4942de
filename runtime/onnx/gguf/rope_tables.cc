#include "runtime/onnx/gguf/rope_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace reprise {
namespace {

// Returns the frequency, counted from the fastest, that makes `turns` turns in the original
// context.
double FrequencyOf(double turns, int64_t width, double base, int64_t context) {
  const double longest = static_cast<double>(context) / (turns * 2 * std::numbers::pi);
  return static_cast<double>(width) * std::log(longest) / (2 * std::log(base));
}

}  // namespace

RopeTables MakeRopeTables(int64_t positions, int64_t width, double base, const RopeScaling& scaling,
                          const std::vector<float>& factors) {
  const int64_t half = width / 2;
  double magnitude = scaling.attention_factor;
  std::vector<double> frequencies(static_cast<size_t>(half));
  for (int64_t i = 0; i < half; ++i) {
    double& frequency = frequencies[static_cast<size_t>(i)];
    frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    if (!factors.empty()) frequency /= static_cast<double>(factors[static_cast<size_t>(i)]);
    if (scaling.kind == RopeScaling::Kind::kLinear) frequency /= scaling.factor;
  }
  if (scaling.kind == RopeScaling::Kind::kYarn) {
    const int64_t context = scaling.original_context;
    const auto last = static_cast<double>(width - 1);
    const double low =
        std::max(0.0, std::floor(FrequencyOf(scaling.beta_fast, width, base, context)));
    const double high =
        std::min(last, std::ceil(FrequencyOf(scaling.beta_slow, width, base, context)));
    for (int64_t i = 0; i < half; ++i) {
      double& frequency = frequencies[static_cast<size_t>(i)];
      const double place = (static_cast<double>(i) - low) / std::max(0.001, high - low);
      const double slow = std::clamp(place, 0.0, 1.0);
      frequency = frequency / scaling.factor * slow + frequency * (1 - slow);
    }
    magnitude *= 1 + 0.1 * std::log(scaling.factor);
  }
  RopeTables tables;
  tables.cosines.reserve(static_cast<size_t>(positions * half));
  tables.sines.reserve(static_cast<size_t>(positions * half));
  for (int64_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      tables.cosines.push_back(static_cast<float>(std::cos(angle) * magnitude));
      tables.sines.push_back(static_cast<float>(std::sin(angle) * magnitude));
    }
  }
  return tables;
}

}  // namespace reprise
