// Convolutions by tiles of neighbouring windows: as exact as window by window.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/device/cpu/windows_harness.h"

namespace reprise {
namespace {

class ConvWinogradTest : public WindowsOfTier {};

TEST_P(ConvWinogradTest, TilesOfNeighbouringWindowsAgreeWithTheReference) {
  Draw draw(4);
  for (uint32_t round = 0; round < 40 && !HasFailure(); ++round) {
    const int64_t channels = draw.From({32, 33, 40, 48, 64, 200}),
                  maps = draw.From({32, 47, 49, 64, 97});
    const std::vector<int64_t> plane = {draw.From({5, 7, 8, 9, 14, 15}),
                                        draw.From({7, 8, 13, 14, 31, 32, 97, 131, 230})};
    const bool bias = draw.Chance(2);
    const std::string text = absl::StrCat(
        "input %x: f32", Dims({draw.From({1, 1, 2, 5}), channels}, plane), "\nparam %w: f32",
        List({maps, channels, 3, 3}), " = p0\n",
        bias ? absl::StrCat("param %b: f32[", maps, "] = p1\n") : "", "%y: ? = reprise.Conv(%x, %w",
        bias ? ", %b" : "", ") {pads = [", draw.From({0, 1, 2}), ", ", draw.From({0, 1, 2}), ", ",
        draw.From({1, 2}), ", ", draw.From({1, 2}), "], activation = \"",
        draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y");
    NodeRun run(text);
    const std::string kernel = device_.Options(run.graph, run.id).at(0).kernel;
    EXPECT_EQ(kernel.rfind("conv_winograd", 0), 0) << kernel << " of " << text;
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// Nothing is turned where channels and maps lie last.
TEST_P(ConvWinogradTest, TilesOfPlanesWithChannelsLastAgreeWithTheReference) {
  Draw draw(5);
  for (uint32_t round = 0; round < 40 && !HasFailure(); ++round) {
    const int64_t channels = draw.From({32, 48, 64, 208}), maps = draw.From({32, 48, 64, 112});
    const std::vector<int64_t> plane = {draw.From({5, 7, 8, 9, 14, 15}),
                                        draw.From({7, 8, 13, 14, 31, 32, 97, 131})};
    const bool bias = draw.Chance(2);
    const std::string text = WithChannelsLast(absl::StrCat(
        "input %x: f32", Dims({draw.From({1, 1, 2, 5}), channels}, plane), "\nparam %w: f32",
        List({maps, channels, 3, 3}), " = p0\n",
        bias ? absl::StrCat("param %b: f32[", maps, "] = p1\n") : "", "%y: ? = reprise.Conv(%x, %w",
        bias ? ", %b" : "", ") {pads = [", draw.From({0, 1, 2}), ", ", draw.From({0, 1, 2}), ", ",
        draw.From({1, 2}), ", ", draw.From({1, 2}), "], activation = \"",
        draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y"));
    NodeRun run(text);
    const std::string kernel = device_.Options(run.graph, run.id).at(0).kernel;
    EXPECT_EQ(kernel.rfind("conv_winograd_last", 0), 0) << kernel << " of " << text;
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// Slices share their input, or have none.
TEST_P(ConvWinogradTest, TilesOfWindowsInSlicesAgreeWithTheReference) {
  Draw draw(9);
  for (uint32_t round = 0; round < 40 && !HasFailure(); ++round) {
    const int64_t channels = draw.From({32, 33, 48, 100}), maps = draw.From({32, 47, 49, 97});
    const int64_t slices = draw.From({1, 2, 3, 4, 5, 7, 9}), taps = draw.From({1, 1, 2, 3, 3, 5});
    const int64_t dilation = draw.From({1, 1, 1, 2, 3}), reach = (taps - 1) * dilation;
    const int64_t front = draw.From({0, 1, reach / 2, reach + 1});
    const int64_t behind = std::max(draw.From({0, 1, reach / 2}), reach + 1 - slices - front);
    const bool bias = draw.Chance(2);
    const std::string text = absl::StrCat(
        "input %x: f32",
        List({draw.From({1, 1, 2, 5}), channels, slices, draw.From({7, 8, 9, 14, 15}),
              draw.From({7, 8, 13, 14, 31, 32, 61})}),
        "\nparam %w: f32", List({maps, channels, taps, 3, 3}), " = p0\n",
        bias ? absl::StrCat("param %b: f32[", maps, "] = p1\n") : "", "%y: ? = reprise.Conv(%x, %w",
        bias ? ", %b" : "", ") {pads = [", front, ", ", draw.From({1, 2}), ", ", draw.From({1, 2}),
        ", ", behind, ", 1, 1], dilations = [", dilation, ", 1, 1], activation = \"",
        draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y");
    NodeRun run(text);
    const std::string kernel = device_.Options(run.graph, run.id).at(0).kernel;
    EXPECT_EQ(kernel.rfind("conv_winograd", 0), 0) << kernel << " of " << text;
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// Small planes share a block with other elements' planes.
TEST_P(ConvWinogradTest, BatchMatesDoNotChangeABitOfTilesOfWindows) {
  const auto text = [](int64_t batch) {
    return absl::StrCat(
        "input %x: f32[", batch,
        ", 40, 7, 9]\nparam %w: f32[50, 40, 3, 3] = p0\n%y: ? = Conv(%x, %w) {pads = "
        "[1, 1, 1, 1]}\noutput %y");
  };
  const auto result = [&](NodeRun& run) {
    return run.RunOption(device_, device_.Options(run.graph, run.id).at(0), 2)[0];
  };
  const auto element = [](const Tensor& all, int64_t index, const Shape& shape) {
    const float* begin = all.span<float>().data() + index * NumElements(shape);
    return Tensor::FromVector<float>(DType::kFloat32, shape,
                                     std::vector<float>(begin, begin + NumElements(shape)));
  };
  NodeRun together(text(5)), alone(text(1));
  alone.inputs[1] = together.inputs[1];
  const Tensor y = result(together);
  for (int64_t i = 0; i < 5; ++i) {
    alone.inputs[0] = element(*together.inputs[0], i, {1, 40, 7, 9});
    EXPECT_EQ(result(alone), element(y, i, {1, 50, 7, 9})) << "element " << i;
  }
}

TEST_P(ConvWinogradTest, TilesOfWindowsAreAsExactAsSumsByWindow) {
  NodeRun run(
      "input %x: f32[1, 256, 14, 14]\nparam %w: f32[64, 256, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
      "{pads = [1, 1, 1, 1]}\noutput %y");
  const Tensor y = run.RunOption(device_, device_.Options(run.graph, run.id).at(0), 1)[0];
  const absl::Span<const float> x = run.inputs[0]->span<float>(), w = run.inputs[1]->span<float>();
  double largest = 0, worst = 0;
  for (int64_t map = 0; map < 64; ++map) {
    for (int64_t row = 0; row < 14; ++row) {
      for (int64_t column = 0; column < 14; ++column) {
        double sum = 0;
        for (int64_t channel = 0; channel < 256; ++channel) {
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t i = row + tap / 3 - 1, j = column + tap % 3 - 1;
            if (i < 0 || i >= 14 || j < 0 || j >= 14) continue;
            sum += double{x[(channel * 14 + i) * 14 + j]} * w[(map * 256 + channel) * 9 + tap];
          }
        }
        largest = std::max(largest, std::abs(sum));
        worst = std::max(worst, std::abs(sum - y.span<float>()[(map * 14 + row) * 14 + column]));
      }
    }
  }
  EXPECT_LT(worst, 2e-6 * largest);
}

// Infinities and NaN stay in the windows that see them, where an infinity may become NaN.
TEST_P(ConvWinogradTest, TilesOfWindowsKeepInfinitiesWhereTheyAreSeen) {
  NodeRun run(
      "input %x: f32[1, 32, 9, 10]\nparam %w: f32[32, 32, 3, 3] = p0\n%y: ? = Conv(%x, %w) "
      "{pads = [1, 1, 1, 1]}\noutput %y");
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  ASSERT_EQ(option.kernel.rfind("conv_winograd", 0), 0) << option.kernel;
  const absl::Span<const float> drawn = run.inputs[0]->span<float>();
  const std::vector<float> x(drawn.begin(), drawn.end());
  int64_t no_number = 0;
  // Each place in a tile.
  for (int64_t at : {33, 34, 43, 44}) {
    for (float value : {std::nanf(""), INFINITY}) {
      std::vector<float> with = x;
      with[5 * 90 + at] = value;
      run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {1, 32, 9, 10}, with);
      const Tensor y = run.RunOption(device_, option, 1)[0], want = run.Reference()[0];
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        const float a = y.span<float>()[i], b = want.span<float>()[i];
        const bool seen = std::abs(i % 90 / 10 - at / 10) <= 1 && std::abs(i % 10 - at % 10) <= 1;
        ASSERT_EQ(std::isfinite(b), !seen) << "element " << i;
        ASSERT_EQ(std::isfinite(a), !seen) << "element " << i << " of " << value << " at " << at;
        if (!seen) {
          ASSERT_NEAR(a, b, 1e-4) << "element " << i;
        } else if (std::isnan(b)) {
          ASSERT_TRUE(std::isnan(a)) << "element " << i;
        } else if (std::isnan(a)) {
          ++no_number;
        }
      }
    }
  }
  EXPECT_GT(no_number, 0);
}

INSTANTIATE_TEST_SUITE_P(Tiers, ConvWinogradTest, testing::ValuesIn(cpu::TestedTiers()),
                         cpu::TierName);

}  // namespace
}  // namespace reprise
