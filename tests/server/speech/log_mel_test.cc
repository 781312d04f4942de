#include "server/speech/log_mel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/server/speech/features.h"

namespace reprise {
namespace {

constexpr int64_t kRate = 16000;

// See make_features.py.
std::vector<float> Signal(int64_t count) {
  std::vector<float> samples;
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    const double turns = 2 * std::numbers::pi * static_cast<double>(i) / kRate;
    state = (state * 1103515245 + 12345) % (uint64_t{1} << 31);
    const double noise = static_cast<double>(state) / (uint64_t{1} << 31) - 0.5;
    const double burst = i % 8000 < 4000 ? 0.2 : 0;
    samples.push_back(static_cast<float>(0.4 * std::sin(440 * turns) +
                                         burst * std::sin(3000.5 * turns) + 0.01 * noise));
  }
  return samples;
}

TEST(LogMelTest, FeaturesAreThoseOfTheDefinitionWithinTenToTheMinusFour) {
  constexpr size_t kEvery = 401;
  for (const FeatureCase& wanted : FeatureCases()) {
    const SpectrumShape shape = {.mels = wanted.mels, .samples = wanted.seconds * kRate};
    LogMel spectrum(shape);
    const auto features = spectrum.Of(Signal(wanted.samples), nullptr);
    ASSERT_TRUE(features.ok()) << features.status();
    ASSERT_EQ(std::ssize(*features), shape.mels * shape.frames());
    for (size_t i = 0; i < wanted.features.size(); ++i) {
      ASSERT_NEAR((*features)[i * kEvery], wanted.features[i], 1e-4)
          << wanted.samples << " samples, feature " << i * kEvery;
    }
  }
}

TEST(LogMelTest, NoSoundIsTheLeastEverywhere) {
  LogMel spectrum(SpectrumShape{});
  const auto features = spectrum.Of(std::vector<float>(1), nullptr);
  ASSERT_TRUE(features.ok());
  EXPECT_THAT(*features, testing::Each(testing::FloatNear(-1.5, 1e-6)));
}

TEST(LogMelTest, EndsWhereItIsNotWantedAnyMore) {
  LogMel spectrum(SpectrumShape{});
  EXPECT_TRUE(absl::IsCancelled(
      spectrum.Of(Signal(16000), [] { return absl::CancelledError("gone"); }).status()));
}

}  // namespace
}  // namespace reprise
