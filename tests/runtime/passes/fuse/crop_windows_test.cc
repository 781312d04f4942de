#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// `weight`: dims of it, `attributes` of the convolution.
std::string Conv(absl::string_view data, absl::string_view weight, absl::string_view attributes) {
  return absl::StrCat("graph {\n  input %x: f32[", data, "]\n  param %w: f32[", weight,
                      "] = p0\n  param %b: f32[6] = p1\n  %y: ? = Conv(%x, %w, %b) {", attributes,
                      "}\n  output %y\n}");
}

TEST(CropWindowsTest, OnlyTheMiddleOfWindowsWiderThanTheirPlaneStays) {
  const std::string text =
      Conv("2, 3, 14, 14", "6, 3, 3, 3", "dilations = [24, 24], pads = [24, 24, 24, 24]");
  ExpectSameAnswers(*CropWindows(), text);
  const std::string after = RunPass(*CropWindows(), text);
  EXPECT_THAT(after, testing::HasSubstr("kernel_shape = [1, 1], pads = [0, 0, 0, 0]"));
  EXPECT_THAT(after, testing::HasSubstr("Slice"));
}

TEST(CropWindowsTest, WhatSeesNothingGoesOnEachSideAndDimByItself) {
  const struct {
    const char *data, *weight, *attributes, *after;
  } cases[] = {
      // Rows alone are wider than the plane.
      {"1, 3, 4, 9", "6, 3, 3, 3", "dilations = [4, 2], pads = [4, 2, 4, 2]",
       "kernel_shape = [1, 3], pads = [0, 2, 0, 2]"},
      // The outer two of five taps go.
      {"1, 3, 7", "6, 3, 5", "dilations = [4], pads = [8, 8]", "kernel_shape = [3], pads = [4, 4]"},
      // Taps in front go alone, with strides.
      {"1, 3, 7, 5", "6, 3, 3, 3", "dilations = [6, 1], pads = [6, 1, 0, 1], strides = [2, 2]",
       nullptr},
      {"1, 3, 13, 5", "6, 3, 3, 1", "dilations = [6, 1], pads = [12, 0, 0, 0], strides = [7, 1]",
       nullptr},
      // Groups, and three dims.
      {"2, 6, 3, 3", "6, 1, 3, 3", "dilations = [3, 3], group = 6, pads = [3, 3, 3, 3]",
       "kernel_shape = [1, 1], pads = [0, 0, 0, 0]"},
      {"1, 3, 2, 3, 4", "6, 3, 3, 3, 3", "dilations = [2, 2, 2], pads = [2, 2, 2, 2, 2, 2]",
       "kernel_shape = [1, 3, 3], pads = [0, 2, 2, 0, 2, 2]"},
      {"1, 3, 4, 4", "6, 3, 3, 3", "auto_pad = \"SAME_UPPER\", dilations = [5, 5]",
       "kernel_shape = [1, 1], pads = [0, 0, 0, 0]"},
  };
  for (const auto& c : cases) {
    const std::string text = Conv(c.data, c.weight, c.attributes);
    SCOPED_TRACE(text);
    ExpectSameAnswers(*CropWindows(), text);
    if (c.after != nullptr) {
      EXPECT_THAT(RunPass(*CropWindows(), text), testing::HasSubstr(c.after));
    }
  }
}

TEST(CropWindowsTest, WindowsThatSeeSomethingEverywhereStay) {
  for (const char* attributes :
       {"pads = [1, 1, 1, 1]", "dilations = [4, 4], pads = [4, 4, 4, 4]"}) {
    ExpectUnchanged(*CropWindows(), Conv("2, 3, 5, 5", "6, 3, 3, 3", attributes));
  }
}

TEST(CropWindowsTest, AWindowOfPaddingAloneKeepsATap) {
  const std::string text = Conv("1, 3, 2, 2", "6, 3, 1, 1", "pads = [3, 3, 3, 3]");
  ExpectUnchanged(*CropWindows(), text);
}

}  // namespace
}  // namespace reprise
