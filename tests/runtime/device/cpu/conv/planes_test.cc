// Pools, whole planes and resampled planes on every tier against their reference kernels.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/conv/depthwise_nchw.h"
#include "runtime/device/cpu/cpu_device.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/device/cpu/windows_harness.h"

namespace reprise {
namespace {

class PlanesTest : public WindowsOfTier {};

TEST_P(PlanesTest, PoolsAgreeWithTheReference) {
  Draw draw(3);
  for (uint32_t round = 0; round < 150 && !HasFailure(); ++round) {
    const bool average = draw.Chance(2);
    const Draw::Windows w =
        draw.DrawWindows(draw.From({1, 2, 2, 2}), /*dilated=*/!average, /*half_padding=*/true);
    Check(absl::StrCat("input %x: f32",
                       Dims({draw.From({1, 2, 3}), draw.From({1, 3, 17})}, w.spatial), "\n%y: ? = ",
                       average ? "AveragePool" : "MaxPool", "(%x) {kernel_shape = ", List(w.kernel),
                       ", ", w.attributes, ", ceil_mode = ", draw.From({0, 1}),
                       average ? absl::StrCat(", count_include_pad = ", draw.From({0, 1})) : "",
                       "}\noutput %y"),
          round);
  }
}

// As pools over planes with their channels last are, one dim after the other.
TEST_P(PlanesTest, PoolsOfOneColumnAgreeWithTheReference) {
  Draw draw(6);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    const bool average = draw.Chance(2);
    const int64_t kernel = draw.From({1, 2, 3, 5}), dilation = average ? 1 : draw.From({1, 1, 2});
    const int64_t begin = draw.From({0, kernel / 2}), end = draw.From({0, kernel / 2});
    const int64_t rows = (kernel - 1) * dilation + 1 + draw.From({0, 1, 4, 9});
    Check(absl::StrCat(
              "input %x: f32",
              List({draw.From({1, 2, 5}), 1, rows, draw.From({2, 7, 8, 15, 16, 17, 33, 96, 131})}),
              "\n%y: ? = ", average ? "AveragePool" : "MaxPool", "(%x) {kernel_shape = ",
              List({kernel, 1}), ", strides = ", List({draw.From({1, 2, 3}), 1}),
              ", dilations = ", List({dilation, 1}), ", pads = ", List({begin, 0, end, 0}),
              ", ceil_mode = ", draw.From({0, 1}),
              average ? absl::StrCat(", count_include_pad = ", draw.From({0, 1})) : "",
              "}\noutput %y"),
          round);
  }
}

// A NaN stays so for every window that sees it, and for no other.
TEST_P(PlanesTest, LargestElementsKeepNaN) {
  constexpr int64_t kRows = 9, kColumns = 37;
  for (const int64_t size : {2, 3, 5}) {
    for (const int64_t stride : {1, 2}) {
      const int64_t pad = size / 2;
      cpu::Strips s;
      s.in = {kRows, kColumns};
      s.kernel = {size, size};
      s.stride = {stride, stride};
      s.pad = {pad, pad};
      s.out = {(kRows + 2 * pad - size) / stride + 1, (kColumns + 2 * pad - size) / stride + 1};
      const cpu::PlaneLargest largest = cpu::PlaneKernelsFor(GetParam()).largest(s);
      ASSERT_NE(largest, nullptr);
      for (int64_t at = 0; at < kRows * kColumns; at += 5) {
        std::vector<float> x(kRows * kColumns);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 101) - 50;
        x[at] = NAN;
        std::vector<float> y(s.out.rows * s.out.columns);
        largest(s, {0, s.out.rows}, x.data(), y.data());
        const int64_t row = at / kColumns, column = at % kColumns;
        for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
          const int64_t top = i / s.out.columns * stride - pad;
          const int64_t left = i % s.out.columns * stride - pad;
          const bool seen =
              row >= top && row < top + size && column >= left && column < left + size;
          ASSERT_EQ(std::isnan(y[i]), seen) << size << ", " << stride << ", " << at << ", " << i;
        }
      }
    }
  }
}

TEST_P(PlanesTest, WholePlanesAgreeWithTheReference) {
  Draw draw(5);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    const int64_t groups = draw.From({1, 2, 5}), channels = groups * draw.From({1, 3, 16});
    std::vector<int64_t> plane = {draw.From({1, 2, 7, 63, 64, 65, 4097})};
    if (draw.Chance(2)) plane.push_back(draw.From({1, 3, 8}));
    const std::string x =
        absl::StrCat("input %x: f32", Dims({draw.From({1, 2, 3}), channels}, plane), "\n");
    Check(absl::StrCat(x, "%y: ? = GlobalAveragePool(%x)\noutput %y"), round);
    const std::string scales =
        absl::StrCat("param %s: f32[", channels, "] = p0\nparam %b: f32[", channels, "] = p1\n");
    Check(absl::StrCat(x, scales, "%y: ? = InstanceNormalization(%x, %s, %b) {epsilon = 0.01}\n",
                       "output %y"),
          round);
    Check(absl::StrCat(x, scales, "%y: ? = GroupNormalization(%x, %s, %b) {epsilon = 0.01, ",
                       "num_groups = ", groups, "}\noutput %y"),
          round);
  }
}

TEST_P(PlanesTest, ScaledPlanesAgreeWithTheReference) {
  Draw draw(9);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    const int64_t channels = draw.From({1, 3, 16});
    std::vector<int64_t> plane = {draw.From({1, 2, 7, 31, 65})};
    if (draw.Chance(2)) plane.push_back(draw.From({1, 3, 8, 33, 64}));
    if (draw.Chance(8)) plane.push_back(5);
    const std::vector<int64_t> tap(plane.size(), 1);
    Check(absl::StrCat("input %x: f32", Dims({draw.From({1, 2, 3}), channels}, plane),
                       "\nparam %w: f32", Dims({channels, 1}, tap), " = p0\nparam %b: f32[",
                       channels, "] = p1\n%y: ? = reprise.Conv(%x, %w, %b) {group = ", channels,
                       ", activation = \"", draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y"),
          round);
  }
}

TEST_P(PlanesTest, ResampledPlanesAgreeWithTheReference) {
  Draw draw(6);
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kCoordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                          "asymmetric", "half_pixel_symmetric"};
  constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  for (uint32_t round = 0; round < 120 && !HasFailure(); ++round) {
    const std::vector<int64_t> in = {draw.From({1, 2, 3}), draw.From({1, 3}),
                                     draw.From({1, 2, 5, 16, 17}),
                                     draw.From({1, 2, 7, 16, 17, 49, 130})};
    const std::vector<int64_t> out = {in[0], in[1], draw.From({in[2], 2 * in[2], 1, 11, 33}),
                                      draw.From({in[3], 2 * in[3], 1, 15, 16, 31, 65})};
    Check(absl::StrCat("input %x: f32", List(in), "\nconst %s: i64[4] = {",
                       absl::StrJoin(out, ", "), "}\n%y: ? = Resize(%x, _, _, %s) {mode = \"",
                       kModes[draw.From({0, 1, 2})], "\", coordinate_transformation_mode = \"",
                       kCoordinates[draw.From({0, 1, 2, 3, 4})], "\", nearest_mode = \"",
                       kNearest[draw.From({0, 1, 2, 3})], "\", antialias = ", draw.From({0, 1}),
                       "}\noutput %y"),
          round);
  }
}

TEST_P(PlanesTest, TheLargestOfWhatHoldsNanIsNan) {
  NodeRun run(
      "input %x: f32[1, 1, 9, 40]\n%y: ? = MaxPool(%x) {kernel_shape = [3, 3], pads = "
      "[1, 1, 1, 1]}\noutput %y");
  std::vector<float> x(9 * 40, -1);
  for (int64_t at : {0, 41, 170, 359}) x[at] = std::nanf("");
  x[200] = -INFINITY;
  run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {1, 1, 9, 40}, x);
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  ExpectClose(run.RunOption(device_, option, 1)[0], run.Reference()[0], kWindowsBound);
}

INSTANTIATE_TEST_SUITE_P(Tiers, PlanesTest, testing::ValuesIn(cpu::TestedTiers()), cpu::TierName);

}  // namespace
}  // namespace reprise
