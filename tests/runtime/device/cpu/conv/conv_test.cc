// Convolutions on every tier against their reference kernel, their parts and their scratch.
#include "runtime/ops/windows/conv.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/device/cpu/windows_harness.h"

namespace reprise {
namespace {

class ConvTest : public WindowsOfTier {
 protected:
  // Checks that the same node with weights given at each call runs in another way, to the same
  // bits.
  void ExpectSameBitsWithGivenWeights(NodeRun& run, const KernelOption& option, std::string text) {
    text.replace(text.find("param %w"), 5, "input");
    text.erase(text.find(" = p0"), 5);
    NodeRun given(text);
    const KernelOption other = device_.Options(given.graph, given.id).at(0);
    EXPECT_EQ(run.RunOption(device_, option, 2)[0], given.RunOption(device_, other, 2)[0]) << text;
  }
};
class ConvPartsTest : public DeviceOfTier {};

TEST_P(ConvTest, ConvolutionsOfEachChannelByItselfAgreeWithTheReference) {
  Draw draw(1);
  for (uint32_t round = 0; round < 150 && !HasFailure(); ++round) {
    const std::string text =
        ConvText(draw, draw.From({1, 2, 2, 2}), draw.From({1, 2, 7, 33}), 1, draw.From({1, 1, 2}));
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

TEST_P(ConvTest, ConvolutionsAsProductsAgreeWithTheReference) {
  Draw draw(2);
  for (uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    const std::string text =
        ConvText(draw, draw.From({1, 2, 2, 2, 3}), draw.From({1, 1, 1, 2}),
                 draw.From({2, 3, 5, 16, 17, 40}), draw.From({1, 3, 8, 9, 16, 47, 48, 49, 60}));
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

TEST_P(ConvTest, ConvolutionsOfPlanesWithChannelsLastAgreeWithTheReference) {
  Draw draw(8);
  for (uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    const bool alone = draw.Chance(2);  // each channel by itself
    const std::string text = WithChannelsLast(
        alone ? ConvText(draw, draw.From({1, 2, 2}), draw.From({7, 8, 16, 17, 33, 64, 100}), 1, 1)
              : ConvText(draw, draw.From({1, 2, 2}), draw.From({1, 1, 3}),
                         draw.From({2, 5, 16, 17, 40}), draw.From({1, 3, 8, 16, 47, 48, 49, 100})));
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// So many elements in a row of a product, or so many of them outside of the plane, that rows of
// taps are taken one after the other; blocks see some of them.
TEST_P(ConvTest, RowsOfTapsOfPlanesWithChannelsLastAddUp) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"[2, 6, 7, 256]", "[50, 256, 3, 3]", "strides = [2, 1], pads = [1, 1, 1, 1]"},
           {"[1, 20, 19, 40]", "[33, 40, 3, 3]", "dilations = [12, 12], pads = [12, 12, 12, 12]"},
           {"[3, 9, 21, 24]", "[49, 24, 5, 3]", "dilations = [4, 1], pads = [8, 1, 8, 1]"},
           {"[2, 3, 30, 32]", "[18, 16, 3, 1]", "group = 2, pads = [2, 0, 2, 0]"},
           {"[1, 2, 2, 300]", "[20, 300, 3, 3]", "dilations = [5, 5], pads = [5, 5, 5, 5]"}}) {
    Check(absl::StrCat("input %x: f32", x, "\nparam %w: f32", w,
                       " = p0\n%y: ? = reprise.Conv(%x, %w) {layout = \"last\", ", attributes,
                       ", activation = \"relu\"}\noutput %y"),
          1);
  }
}

TEST_P(ConvTest, ConvolutionsOfFewChannelsWithMapsLastAgreeWithTheReference) {
  Draw draw(9);
  for (uint32_t round = 0; round < 120 && !HasFailure(); ++round) {
    const std::string text =
        WithMapsLast(ConvText(draw, draw.From({1, 2, 2}), 1, draw.From({1, 2, 3, 4, 7}),
                              draw.From({1, 3, 7, 8, 15, 16, 17, 24, 33, 64, 100})));
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// Rows that are copied some columns at a time, and windows that alone see much.
TEST_P(ConvTest, WideRowsOfFewChannelsAgreeWithTheReference) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"[2, 7, 9, 1500]", "[24, 7, 7, 5]", "strides = [2, 3], pads = [3, 2, 3, 2]"},
           {"[1, 1, 70000]", "[17, 1, 10]", "strides = [5], pads = [4, 9]"},
           {"[1, 3, 5, 4001]", "[16, 3, 3, 3]", "pads = [1, 1, 1, 1], dilations = [1, 2]"},
           {"[1, 15, 60, 60]", "[33, 15, 40, 40]", "strides = [7, 9], pads = [5, 0, 5, 9]"}}) {
    Check(absl::StrCat("input %x: f32", x, "\nparam %w: f32", w,
                       " = p0\n%y: ? = reprise.Conv(%x, %w) {layout = \"to_last\", ", attributes,
                       ", activation = \"silu\"}\noutput %y"),
          1);
  }
}

// Which layout is taken may differ from bucket to bucket.
TEST_P(ConvTest, ChannelsLastAndFirstGiveTheSameBits) {
  constexpr int64_t kBatch = 2, kChannels = 48, kPlane = 7 * 9;
  for (absl::string_view conv :
       {"param %w: f32[48, 1, 3, 3] = p0\nparam %b: f32[48] = p1\n%y: ? = reprise.Conv(%x, %w, "
        "%b) {group = 48, pads = [1, 1, 1, 1], activation = \"silu\"}\noutput %y",
        "param %w: f32[48, 1, 5, 5] = p0\n%y: ? = reprise.Conv(%x, %w) {group = 48, pads = [2, 2, "
        "2, 2], activation = \"relu\"}\noutput %y",
        "param %w: f32[48, 48, 1, 1] = p0\nparam %b: f32[48] = p1\n%y: ? = reprise.Conv(%x, %w, "
        "%b) {activation = \"hard_swish\"}\noutput %y"}) {
    const std::string text = absl::StrCat("input %x: f32[2, 48, 7, 9]\n", conv);
    NodeRun first(text), last(WithChannelsLast(text));
    for (size_t i = 1; i < first.inputs.size(); ++i) last.inputs[i] = first.inputs[i];
    const auto turned = [&](const float* from, int64_t rows, int64_t columns) {
      return ops::TurnedPlanes(from, kBatch, rows, columns);
    };
    last.inputs[0] =
        Tensor::FromVector(DType::kFloat32, last.inputs[0]->shape(),
                           turned(first.inputs[0]->span<float>().data(), kChannels, kPlane));
    const Tensor a = first.RunOption(device_, device_.Options(first.graph, first.id).at(0), 2)[0];
    const Tensor b = last.RunOption(device_, device_.Options(last.graph, last.id).at(0), 2)[0];
    const std::vector<float> of_last = turned(b.span<float>().data(), kPlane, kChannels);
    const auto of_first = a.span<float>();
    ASSERT_EQ(of_last.size(), of_first.size());
    for (size_t i = 0; i < of_last.size(); ++i) ASSERT_EQ(of_last[i], of_first[i]) << text;
  }
}

// The lone window of a plane in front lies in the padding, or a plane has as many windows as
// elements in other rows: a window is no element there.
TEST_P(ConvTest, WindowsOfOneTapMayLieOutsideOfThePlane) {
  Check(
      "input %x: f32[1, 16, 1, 9, 9]\nparam %w: f32[8, 16, 1, 1, 1] = p0\n%y: ? = Conv(%x, %w) "
      "{strides = [2, 1, 1], pads = [1, 0, 0, 0, 0, 0]}\noutput %y",
      1);
  Check(
      "input %x: f32[1, 16, 1, 9, 9]\nparam %w: f32[16, 8, 2, 1, 1] = p0\n%y: ? = "
      "ConvTranspose(%x, %w) {strides = [2, 1, 1], dilations = [3, 1, 1], pads = "
      "[2, 0, 0, 1, 0, 0]}\noutput %y",
      2);
  Check(
      "input %x: f32[1, 16, 2, 3]\ninput %w: f32[16, 8, 1, 1]\n%y: ? = ConvTranspose(%x, %w) "
      "{dilations = [2, 2], pads = [0, 0, 0, 1], output_padding = [1, 0]}\noutput %y",
      3);
}

// Taps along the dim in front: none of them meets the only plane, or one of three does.
TEST_P(ConvTest, TapsInFrontMayMissTheOnlyPlane) {
  for (const char* conv : {
           "input %x: f32[9, 17, 1, 1, 1]\nparam %w: f32[160, 17, 2, 1, 1] = p0\n%y: ? = Conv(%x, "
           "%w) {dilations = [3, 1, 1], pads = [1, 0, 0, 2, 0, 0]}\noutput %y",
           "input %x: f32[2, 3, 1, 16, 16]\nparam %w: f32[64, 3, 2, 8, 8] = p0\n%y: ? = Conv(%x, "
           "%w) {strides = [1, 8, 8], dilations = [3, 1, 1], pads = [1, 0, 0, 2, 0, 0]}\noutput %y",
           "input %x: f32[2, 5, 1, 1, 9]\nparam %w: f32[64, 5, 3, 1, 3] = p0\n%y: ? = Conv(%x, "
           "%w) {pads = [1, 0, 1, 1, 0, 1]}\noutput %y",
           "input %x: f32[9, 17, 1, 1, 1]\nparam %w: f32[160, 17, 4, 4, 4] = p0\n%y: ? = Conv(%x, "
           "%w) {dilations = [3, 1, 1], pads = [4, 1, 1, 5, 2, 2]}\noutput %y",
       }) {
    Check(conv, 1);
  }
}

// The scratch that launches are planned with is bounded: plans only, nothing this large is run.
TEST_P(ConvTest, ScratchOfConvolutionsIsBounded) {
  const CpuDevice device({.max_isa = GetParam(), .max_threads = 16});
  const auto options = [&](const char* text) {
    NodeRun run(text);
    return device.Options(run.graph, run.id);
  };
  // A plane of 25 million results, of which a part would hold one.
  for (const KernelOption& option :
       options("input %x: f32[1, 16, 2, 2]\nparam %w: f32[16, 32, 2, 2] = p0\n%y: ? = "
               "ConvTranspose(%x, %w) {dilations = [5000, 5000]}\noutput %y")) {
    EXPECT_EQ(option.kernel.find("conv_transpose"), std::string::npos) << option.kernel;
  }
  // 9 million floats of weights, which each part orders for itself, of 16 threads.
  constexpr size_t kBytes = size_t{288} << 20;
  for (const char* text :
       {"input %x: f32[64, 1024, 9, 9]\ninput %w: f32[1024, 1024, 3, 3]\n%y: ? = Conv(%x, %w)\n"
        "output %y",
        "input %x: f32[64, 1024, 9, 9]\ninput %w: f32[1024, 1024, 3, 3]\n%y: ? = "
        "ConvTranspose(%x, %w)\noutput %y"}) {
    const std::vector<KernelOption> planned = options(text);
    ASSERT_FALSE(planned.empty()) << text;
    EXPECT_LT(planned[0].workspace_bytes, kBytes) << text;
    EXPECT_GT(planned[0].workspace_bytes, kBytes / 2) << text;
  }
}

TEST_P(ConvTest, ConvolutionsWithComputedWeightsAgreeWithTheReference) {
  Draw draw(7);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    std::string text = ConvText(draw, draw.From({1, 2, 2, 3}), draw.From({1, 2, 3}),
                                draw.From({2, 3, 17}), draw.From({3, 8, 9, 49}));
    const size_t param = text.find("param %w"), value = text.find(" = p0");
    text.erase(value, 5).replace(param, 5, "input");
    const size_t bias = text.find(" = p1");
    if (bias != std::string::npos) text[bias + 4] = '0';
    Check(text, round);
  }
}

// Another bucket may take the other way, and so may another thread's share.
TEST_P(ConvTest, PackedWeightsAndPackedWindowsGiveTheSameBits) {
  for (const char* windows : {"f32[3, 40, 13, 14]", "f32[1, 40, 16, 15]", "f32[2, 40, 5, 9]"}) {
    const auto run = [&](absl::string_view weights) {
      NodeRun node(absl::StrCat("input %x: ", windows, "\n", weights,
                                "\nparam %b: f32[50] = p1\n%y: ? = reprise.Conv(%x, %w, %b) "
                                "{pads = [1, 1, 1, 1], strides = [2, 2], activation = \"relu\"}"
                                "\noutput %y"));
      const KernelOption option = device_.Options(node.graph, node.id).at(0);
      return std::pair(option.kernel, node.RunOption(device_, option, 2)[0]);
    };
    const auto [few, packed] = run("param %w: f32[50, 40, 3, 3] = p0");
    const auto [many, unpacked] = run("input %w: f32[50, 40, 3, 3]");
    EXPECT_NE(few, many);
    EXPECT_EQ(packed, unpacked) << windows;
  }
}

// So too along one dim: few windows are rows of a product, many are columns.
TEST_P(ConvTest, WindowsOfARowGiveTheSameBitsHoweverManyThereAre) {
  const auto text = [](int64_t columns, absl::string_view attributes) {
    return absl::StrCat("input %x: f32[1, 40, ", columns,
                        "]\nparam %w: f32[128, 40, 5] = p0\nparam %b: f32[128] = p1\n%y: ? = "
                        "reprise.Conv(%x, %w, %b) {",
                        attributes, ", activation = \"relu\"}\noutput %y");
  };
  for (absl::string_view attributes :
       {"pads = [2, 0]", "pads = [2, 0], strides = [2]", "pads = [2, 0], dilations = [2]",
        "pads = [0, 0], strides = [2], dilations = [2]"}) {
    NodeRun many(text(211, attributes)), few(text(11, attributes));
    for (size_t i = 1; i < few.inputs.size(); ++i) few.inputs[i] = many.inputs[i];
    std::vector<float> begins;
    for (int64_t channel = 0; channel < 40; ++channel) {
      const float* const row = many.inputs[0]->span<float>().data() + channel * 211;
      begins.insert(begins.end(), row, row + 11);
    }
    few.inputs[0] = Tensor::FromVector(DType::kFloat32, {1, 40, 11}, begins);
    const KernelOption as_columns = device_.Options(many.graph, many.id).at(0);
    const KernelOption as_rows = device_.Options(few.graph, few.id).at(0);
    EXPECT_EQ(as_columns.kernel.rfind("conv_lines", 0), 0) << as_columns.kernel;
    if (GetParam().Covers(Isa::kAvx2)) {
      EXPECT_EQ(as_rows.kernel.rfind("conv_weights", 0), 0) << as_rows.kernel;
    }
    const Tensor whole = many.RunOption(device_, as_columns, 2)[0];
    const Tensor begin = few.RunOption(device_, as_rows, 2)[0];
    const int64_t windows = begin.shape()[2];
    for (int64_t map = 0; map < 128; ++map) {
      EXPECT_EQ(std::memcmp(begin.span<float>().data() + map * windows,
                            whole.span<float>().data() + map * whole.shape()[2],
                            static_cast<size_t>(windows) * sizeof(float)),
                0)
          << attributes << " map " << map;
    }
  }
}

// Few windows of a row that may hang over its ends, of several elements of the batch.
TEST_P(ConvTest, FewWindowsOfARowAgreeWithTheReference) {
  Draw draw(23);
  for (uint32_t round = 0; round < 80 && !HasFailure(); ++round) {
    const int64_t channels = draw.From({1, 3, 16, 33}), maps = draw.From({32, 49, 97});
    const int64_t groups = draw.From({1, 1, 3});
    const int64_t size = draw.From({2, 3, 5, 64}), stride = draw.From({1, 1, 2, 5, 64});
    const int64_t dilation = draw.From({1, 1, 2, 3}), windows = draw.From({1, 2, 4, 7, 9, 13});
    const int64_t reach = (size - 1) * dilation + 1;
    const int64_t before = draw.From({0, 0, size / 2, reach}), behind = draw.From({0, 0, size / 2});
    const int64_t columns = (windows - 1) * stride + reach - before - behind;
    if (columns < 1) continue;
    const std::string text = absl::StrCat(
        "input %x: f32", List({draw.From({1, 1, 2, 8, 31}), groups * channels, columns}),
        "\nparam %w: f32", List({groups * maps, channels, size}), " = p0\nparam %b: f32[",
        groups * maps, "] = p1\n%y: ? = reprise.Conv(%x, %w, %b) {group = ", groups,
        ", strides = ", List({stride}), ", dilations = ", List({dilation}),
        ", pads = ", List({before, behind}), ", activation = \"", draw.Chance(2) ? "relu" : "silu",
        "\"}\noutput %y");
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// Taps that reach far have whole runs of windows in the padding, and are left out there.
TEST_P(ConvTest, TapsOfARowThatSeePaddingAloneAreLeftOut) {
  for (int64_t dilation : {5, 16, 47, 64, 200}) {
    for (int64_t before : {2 * dilation, dilation, int64_t{0}}) {
      for (int64_t stride : {1, 2}) {
        Check(absl::StrCat(
                  "input %x: f32[2, 5, 150]\nparam %w: f32[40, 5, 3] = p0\nparam %b: f32[40] "
                  "= p1\n%y: ? = Conv(%x, %w, %b) {dilations = ",
                  List({dilation}), ", strides = ", List({stride}),
                  ", pads = ", List({before, 2 * dilation - before}), "}\noutput %y"),
              static_cast<uint32_t>(dilation));
      }
    }
  }
}

// Runs of windows go over the ends of rows, and end with a block where rows are long or many.
TEST_P(ConvTest, ConvolutionsOfFewMapsReadWhatTheySeeInPlace) {
  Draw draw(11);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    const int64_t groups = draw.From({1, 1, 2, 5}), channels = draw.From({1, 3, 8, 16, 33});
    int64_t maps = draw.From({1, 3, 4, 7, 8, 9, 16, 31, 32});
    const int64_t stride = draw.From({1, 2, 3, 4}), dilation = draw.From({1, 1, 2, 3});
    const bool one_row = draw.Chance(3);
    // Any number of them, unless the stride is long.
    if (one_row && maps == 32) maps = stride < 3 ? 130 : 31;
    const int64_t size = draw.From({3, 5, 7}), pad = draw.From({0, size / 2 * dilation});
    const int64_t rows = one_row ? 1 : draw.From({20, 41, 64});
    const int64_t columns = one_row ? draw.From({700, 768, 769, 1601}) : draw.From({21, 57, 130});
    const std::string text = absl::StrCat(
        "input %x: f32", List({draw.From({1, 1, 3}), groups * channels, rows, columns}),
        "\nparam %w: f32", List({groups * maps, channels, one_row ? 1 : 7, size}),
        " = p0\nparam %b: f32[", groups * maps,
        "] = p1\n%y: ? = reprise.Conv(%x, %w, %b) {group = ", groups,
        ", strides = ", List({stride, stride}), ", dilations = ", List({1, dilation}),
        ", pads = ", List({one_row ? 0 : 3, pad, one_row ? 0 : 3, pad}), ", activation = \"",
        draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y");
    NodeRun run(text);
    const std::string kernel = device_.Options(run.graph, run.id).at(0).kernel;
    if (channels > 1) {
      EXPECT_EQ(kernel.rfind("conv_lines", 0), 0) << kernel << " of " << text;
    }
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// Each channel by itself over planes that are narrower than a vector: several channels at once, the
// last of which may be few. Equal to the bit with rows of a plane.
TEST_P(ConvTest, NarrowPlanesGoSeveralChannelsAtOnce) {
  Draw draw(19);
  for (uint32_t round = 0; round < 80 && !HasFailure(); ++round) {
    const bool one_row = draw.Chance(4);
    const int64_t channels = draw.From({16, 17, 24, 40}), size = draw.From({2, 3, 5, 7});
    const int64_t rows = one_row ? 1 : draw.From({2, 3, 5, 7}), columns = draw.From({2, 3, 5, 7});
    const int64_t stride = draw.From({1, 1, 2, 3}), dilation = draw.From({1, 1, 2});
    const int64_t pad = (size - 1) * dilation / 2;
    const std::string known = absl::StrCat(
        "input %x: f32", List({draw.From({1, 3}), channels, rows, columns}), "\nparam %w: f32",
        List({channels, 1, one_row ? 1 : size, size}), " = p0\nparam %b: f32[", channels,
        "] = p1\n%y: ? = reprise.Conv(%x, %w, %b) {group = ", channels,
        ", strides = ", List({stride, stride}), ", dilations = ", List({dilation, dilation}),
        ", pads = ", List({one_row ? 0 : pad, pad, one_row ? 0 : pad, pad}), ", activation = \"",
        draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y");
    NodeRun run(known);
    const KernelOption option = device_.Options(run.graph, run.id).at(0);
    if (GetParam().Covers(Isa::kAvx2)) {
      EXPECT_EQ(option.kernel.rfind("conv_depthwise_channels", 0), 0) << option.kernel << known;
    }
    Check(draw.Chance(3) ? WithResidual(known) : known, round);
    ExpectSameBitsWithGivenWeights(run, option, known);
  }
}

// Long windows of each channel by itself, along one dim: several channels at once too.
TEST_P(ConvTest, LongWindowsOfARowGoSeveralChannelsAtOnce) {
  Draw draw(29);
  for (uint32_t round = 0; round < 60 && !HasFailure(); ++round) {
    const int64_t channels = draw.From({16, 17, 40}), size = draw.From({12, 15, 31});
    const int64_t stride = draw.From({1, 1, 2, 3}), dilation = draw.From({1, 1, 2});
    const int64_t reach = (size - 1) * dilation;
    const int64_t columns = draw.From({1, 31, 101, 127, 128, 129, 300});
    const int64_t before = draw.From({reach / 2, reach}), behind = reach - before;
    const std::string known =
        absl::StrCat("input %x: f32", List({draw.From({1, 3}), channels, columns}),
                     "\nparam %w: f32", List({channels, 1, size}), " = p0\nparam %b: f32[",
                     channels, "] = p1\n%y: ? = reprise.Conv(%x, %w, %b) {group = ", channels,
                     ", strides = ", List({stride}), ", dilations = ", List({dilation}),
                     ", pads = ", List({before, behind}), ", activation = \"",
                     draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y");
    NodeRun run(known);
    const KernelOption option = device_.Options(run.graph, run.id).at(0);
    if (GetParam().Covers(Isa::kAvx2) && columns > 16) {
      EXPECT_EQ(option.kernel.rfind("conv_depthwise_channels", 0), 0) << option.kernel << known;
    }
    Check(draw.Chance(3) ? WithResidual(known) : known, round);
    ExpectSameBitsWithGivenWeights(run, option, known);
  }
}

// Windows without gaps, of which some have no room at the ends of rows and planes.
TEST_P(ConvTest, PatchesAgreeWithTheReference) {
  Draw draw(17);
  for (uint32_t round = 0; round < 40 && !HasFailure(); ++round) {
    const int64_t rows = draw.From({1, 3, 4, 8}), columns = draw.From({4, 5, 8, 11, 16});
    const int64_t height = rows * draw.From({1, 3, 14}) + draw.From({int64_t{0}, rows - 1});
    const int64_t width =
        columns * draw.From({1, 7, 14, 23}) + draw.From({int64_t{0}, columns - 1});
    const int64_t maps = draw.From({32, 49, 97}), channels = draw.From({1, 3, 20});
    const std::string text = absl::StrCat(
        "input %x: f32", List({draw.From({1, 2, 5}), channels, height, width}), "\nparam %w: f32",
        List({maps, channels, rows, columns}), " = p0\nparam %b: f32[", maps,
        "] = p1\n%y: ? = reprise.Conv(%x, %w, %b) {strides = ", List({rows, columns}),
        ", activation = \"", draw.Chance(2) ? "relu" : "silu", "\"}\noutput %y");
    NodeRun run(text);
    const std::string kernel = device_.Options(run.graph, run.id).at(0).kernel;
    if (columns >= 8 && channels > 1) {
      EXPECT_EQ(kernel.rfind("conv_weights", 0), 0) << kernel << " of " << text;
    }
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

// The last ones of rows and planes see padding, which lies after planes alone.
TEST_P(ConvTest, PatchesHangOverTheEndOfAPlane) {
  Draw draw(18);
  for (uint32_t round = 0; round < 20 && !HasFailure(); ++round) {
    const int64_t rows = draw.From({1, 4, 8}), columns = draw.From({4, 8, 11});
    const int64_t below = draw.From({int64_t{0}, rows / 2}), behind = draw.From({1, 3});
    const std::string text = absl::StrCat(
        "input %x: f32",
        List({draw.From({1, 3}), 3, rows * draw.From({1, 5}) - below + (rows == 1 ? 1 : 0),
              columns * draw.From({2, 9}) - behind}),
        "\nparam %w: f32", List({64, 3, rows, columns}),
        " = p0\n%y: ? = Conv(%x, %w) {strides = ", List({rows, columns}),
        ", pads = ", List({0, 0, below, behind}), "}\noutput %y");
    Check(text, round);
  }
}

TEST_P(ConvTest, WindowsReadInPlaceAndPanelsOfThemGiveTheSameBits) {
  for (const char* windows : {"f32[3, 40, 13, 14]", "f32[1, 40, 36, 95]", "f32[2, 40, 5, 9]"}) {
    const auto run = [&](absl::string_view weights) {
      NodeRun node(absl::StrCat("input %x: ", windows, "\n", weights,
                                "\nparam %b: f32[20] = p1\n%y: ? = reprise.Conv(%x, %w, %b) "
                                "{pads = [1, 1, 1, 1], strides = [2, 2], activation = \"relu\"}"
                                "\noutput %y"));
      const KernelOption option = device_.Options(node.graph, node.id).at(0);
      return std::pair(option.kernel, node.RunOption(device_, option, 2)[0]);
    };
    const auto [in_place, lines] = run("param %w: f32[20, 40, 3, 3] = p0");
    const auto [panels, unpacked] = run("input %w: f32[20, 40, 3, 3]");
    EXPECT_NE(in_place, panels);
    EXPECT_EQ(lines, unpacked) << windows;
  }
}

TEST_P(ConvPartsTest, PartsOfAConvolutionDivideItsMapsAndChangeNoBit) {
  NodeRun run(
      "input %x: f32[1, 64, 7, 7]\nparam %w: f32[128, 64, 3, 3] = p0\n"
      "%y: ? = Conv(%x, %w) {pads = [1, 1, 1, 1]}\noutput %y");
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  const Tensor whole = run.RunOption(device_, option, 1)[0];
  for (int parts : {2, 3, 16}) {
    const Tensor divided = run.RunOption(device_, option, parts)[0];
    EXPECT_EQ(std::memcmp(divided.data(), whole.data(), whole.bytes()), 0) << parts << " parts";
  }
  // One part of two writes neither nothing nor everything.
  const Tensor half = run.RunOption(device_, option, 2, false, 0, /*only_part=*/1)[0];
  EXPECT_NE(std::memcmp(half.data(), whole.data(), whole.bytes() / 4), 0);
  EXPECT_EQ(std::memcmp(half.span<float>().data() + half.span<float>().size() / 4 * 3,
                        whole.span<float>().data() + whole.span<float>().size() / 4 * 3,
                        whole.bytes() / 4),
            0);
}

TEST_P(ConvPartsTest, WorkspaceOfAConvolutionFitsItsWork) {
  const CpuDevice device({.max_isa = GetParam(), .max_threads = 16});
  const auto workspace = [&](const char* text) {
    const NodeRun run(text);
    return device.Options(run.graph, run.id).at(0).workspace_bytes;
  };
  // One tile of maps: one part's panel, and the three rows that each channel's window sees.
  EXPECT_LE(workspace("input %x: f32[1, 64, 3, 3]\nparam %w: f32[4, 64, 3, 3] = p0\n"
                      "%y: ? = Conv(%x, %w)\noutput %y"),
            size_t{64 * (9 * 48 + 4 * 16) * sizeof(float)});
  // A copy is not as deep as the sums are.
  EXPECT_LE(workspace("input %x: f32[1, 1024, 14, 14]\nparam %w: f32[4, 1024, 7, 7] = p0\n"
                      "%y: ? = Conv(%x, %w) {pads = [3, 3, 3, 3]}\noutput %y"),
            size_t{12} << 20);
}

INSTANTIATE_TEST_SUITE_P(Tiers, ConvTest, testing::ValuesIn(cpu::TestedTiers()), cpu::TierName);
INSTANTIATE_TEST_SUITE_P(Tiers, ConvPartsTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise
