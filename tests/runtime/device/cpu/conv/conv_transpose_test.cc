// Transposed convolutions on every tier against their reference kernel.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/device/cpu/windows_harness.h"

namespace reprise {
namespace {

class ConvTransposeTest : public WindowsOfTier {};

TEST_P(ConvTransposeTest, TransposedConvolutionsAgreeWithTheReference) {
  Draw draw(4);
  for (uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    std::string text = ConvTransposeText(draw, draw.From({1, 2, 2, 2, 3}));
    const size_t param = text.find("param %w: ");
    if (param != std::string::npos) text.insert(text.find('\n', param), " = p0");
    Check(text, round);
  }
}

TEST_P(ConvTransposeTest, TransposedConvolutionsIntoFewMapsAgreeWithTheReference) {
  Draw draw(5);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    const int64_t maps = draw.From({1, 2, 3, 5}), channels = draw.From({16, 17, 33});
    const std::vector<int64_t> kernel = {draw.From({1, 2, 3, 4}), draw.From({1, 2, 3, 4})};
    const bool bias = draw.Chance(2);
    Check(absl::StrCat("input %x: f32",
                       List({draw.From({1, 2, 3}), channels, draw.From({9, 17, 33, 50}),
                             draw.From({8, 31, 97, 131})}),
                       "\nparam %w: f32", Dims({channels, maps}, kernel), " = p0\n",
                       bias ? absl::StrCat("input %b: f32[", maps, "]\n") : "",
                       "%y: ? = reprise.ConvTranspose(%x, %w", bias ? ", %b" : "",
                       ") {activation = \"tanh\", strides = ",
                       List({draw.From({1, 2, 3}), draw.From({1, 2, 3})}), ", dilations = ",
                       List({draw.From({1, 1, 2}), draw.From({1, 1, 2})}), ", pads = ",
                       List({draw.From({0, 1, 3}), draw.From({0, 1, 3}), draw.From({0, 2}),
                             draw.From({0, 2})}),
                       "}\noutput %y"),
          round);
  }
}

TEST_P(ConvTransposeTest, TransposedConvolutionsOfPlanesWithChannelsLastAgreeWithTheReference) {
  Draw draw(6);
  for (uint32_t round = 0; round < 300 && !HasFailure(); ++round) {
    std::string text = ConvTransposeText(draw, draw.From({1, 2, 2}));
    const size_t param = text.find("param %w: ");
    if (param == std::string::npos || text.find("group = 1,") == std::string::npos) continue;
    text.insert(text.find('\n', param), " = p0");
    Check(WithChannelsLast(text), round);
  }
}

// So many channels that a sum is added up stretch by stretch.
TEST_P(ConvTransposeTest, TransposedConvolutionsOfManyChannelsAgreeWithTheReference) {
  Check(
      "input %x: f32[1, 1100, 3, 20]\nparam %w: f32[1100, 9, 5, 5] = p0\n%y: ? = "
      "ConvTranspose(%x, %w) {strides = [1, 2], pads = [2, 2, 2, 2]}\noutput %y",
      1);
}

// Most of the results that lie strides apart have no element, and there are pieces by the hundred
// thousand.
TEST_P(ConvTransposeTest, TransposedConvolutionsOfLargeStridesAgreeWithTheReference) {
  Check(
      "input %x: f32[2, 3, 130, 3]\ninput %w: f32[3, 2, 2, 1]\ninput %b: f32[2]\n%y: ? = "
      "ConvTranspose(%x, %w, %b) {strides = [64, 32], dilations = [3, 1]}\noutput %y",
      1);
}

INSTANTIATE_TEST_SUITE_P(Tiers, ConvTransposeTest, testing::ValuesIn(cpu::TestedTiers()),
                         cpu::TierName);

}  // namespace
}  // namespace reprise
