// Convolutions and pooling on every tier against their reference kernels, over shapes that are
// drawn: sizes around a vector, strides, dilations, padding, groups.
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

// Within 5e-5 of the largest element: an activation may have made all of them small.
void ExpectNear(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  const absl::Span<const float> a = got.span<float>(), b = want.span<float>();
  float largest = 1;
  for (float x : b) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) continue;
    ASSERT_NEAR(a[i], b[i], 5e-5 * largest) << "element " << i;
  }
}

std::string List(absl::Span<const int64_t> values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

// Shapes, drawn from sizes that are on either side of something.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int64_t From(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }
  bool Chance(int of) { return random_() % of == 0; }

  // The dims of an operand and the attributes of windows that fit them.
  struct Windows {
    std::vector<int64_t> spatial, kernel;
    std::string attributes;
  };
  Windows DrawWindows(size_t dims, bool dilated, bool half_padding) {
    Windows w;
    std::vector<int64_t> strides, dilations, begin, end;
    const bool column = dims > 1 && Chance(6);  // planes of one column
    for (size_t d = 0; d < dims; ++d) {
      if (column && d + 1 == dims) {
        w.spatial.push_back(1);
        w.kernel.push_back(1);
        for (auto* zeros : {&begin, &end}) zeros->push_back(0);
        for (auto* ones : {&strides, &dilations}) ones->push_back(1);
        break;
      }
      const int64_t kernel = From({1, 2, 3, 3, 3, 5, 7});
      const int64_t dilation = dilated ? From({1, 1, 1, 2, 3}) : 1;
      const int64_t extent = (kernel - 1) * dilation + 1;
      const int64_t most = half_padding ? kernel / 2 : 3;
      begin.push_back(From({0, kernel / 2, std::min(most, kernel - 1)}));
      end.push_back(From({0, kernel / 2, std::min(most, kernel - 1)}));
      strides.push_back(From({1, 1, 1, 2, 2, 3}));
      dilations.push_back(dilation);
      w.kernel.push_back(kernel);
      const bool last = d + 1 == dims;
      const int64_t size = last ? From({1, 2, 7, 8, 13, 15, 16, 17, 31, 33, 47, 48, 49, 97, 131})
                                : From({1, 2, 3, 4, 5, 7, 11, 14});
      w.spatial.push_back(std::max(size, extent - begin.back() - end.back()));
      w.spatial.back() = std::max<int64_t>(w.spatial.back(), 1);
    }
    begin.insert(begin.end(), end.begin(), end.end());
    w.attributes = absl::StrCat("strides = ", List(strides), ", pads = ", List(begin));
    if (dilated) absl::StrAppend(&w.attributes, ", dilations = ", List(dilations));
    return w;
  }

 private:
  std::mt19937 random_;
};

std::string Dims(std::vector<int64_t> front, const std::vector<int64_t>& back) {
  front.insert(front.end(), back.begin(), back.end());
  return List(front);
}

// A Conv or reprise.Conv in `groups` groups.
std::string ConvText(Draw& draw, size_t dims, int64_t groups, int64_t group_channels,
                     int64_t group_maps) {
  const Draw::Windows w = draw.DrawWindows(dims, /*dilated=*/true, /*half_padding=*/false);
  const int64_t batch = draw.From({1, 1, 2, 3}), maps = groups * group_maps;
  std::string text =
      absl::StrCat("input %x: f32", Dims({batch, groups * group_channels}, w.spatial),
                   "\nparam %w: f32", Dims({maps, group_channels}, w.kernel), " = p0\n");
  const bool bias = draw.Chance(2), fused = draw.Chance(2);
  if (bias) absl::StrAppend(&text, "param %b: f32[", maps, "] = p1\n");
  absl::StrAppend(&text, "%y: ? = ", fused ? "reprise.Conv" : "Conv", "(%x, %w", bias ? ", %b" : "",
                  ") {group = ", groups, ", ", w.attributes);
  constexpr const char* kActivations[] = {"relu",
                                          "clip\", low = -0.5, high = 1.5, note = \"",
                                          "hard_swish",
                                          "sigmoid",
                                          "silu",
                                          "leaky_relu\", slope = 0.1, note = \"",
                                          "tanh",
                                          "gelu",
                                          "none",
                                          "mish",
                                          "elu\", slope = 0.8, note = \""};
  if (fused) {
    absl::StrAppend(&text, ", activation = \"",
                    kActivations[draw.From({0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})], "\"");
  }
  return absl::StrCat(text, "}\noutput %y");
}

// A ConvTranspose whose weights are a parameter, a constant or computed.
std::string ConvTransposeText(Draw& draw, size_t dims) {
  const int64_t groups = draw.From({1, 1, 1, 2, 3});
  const int64_t channels = draw.From({1, 3, 16, 17, 33}), maps = draw.From({1, 2, 7, 8, 9, 17, 40});
  std::vector<int64_t> spatial, kernel, strides, dilations, begin, end, more;
  for (size_t d = 0; d < dims; ++d) {
    kernel.push_back(draw.From({1, 2, 3, 4, 4, 5, 7}));
    strides.push_back(draw.From({1, 2, 2, 2, 3, 5}));
    dilations.push_back(draw.From({1, 1, 1, 2, 3}));
    spatial.push_back(d + 1 == dims ? draw.From({1, 2, 7, 15, 16, 17, 31, 33, 49, 97})
                                    : draw.From({1, 2, 3, 5, 8}));
    more.push_back(draw.From({0, 0, std::max(strides.back(), dilations.back()) - 1}));
    const int64_t extent = (kernel.back() - 1) * dilations.back() + 1;
    const int64_t size = (spatial.back() - 1) * strides.back() + extent + more.back();
    begin.push_back(std::min(draw.From({0, 1, kernel.back() / 2, extent}), (size - 1) / 2));
    end.push_back(std::min(draw.From({0, 1, kernel.back() / 2, extent}), (size - 1) / 2));
  }
  begin.insert(begin.end(), end.begin(), end.end());
  const bool bias = draw.Chance(2), fused = draw.Chance(2);
  return absl::StrCat(
      "input %x: f32", Dims({draw.From({1, 1, 2, 3}), groups * channels}, spatial), "\n",
      draw.Chance(3) ? "input" : "param", " %w: f32", Dims({groups * channels, maps}, kernel),
      bias ? absl::StrCat("\ninput %b: f32[", groups * maps, "]") : "",
      "\n%y: ? = ", fused ? "reprise." : "", "ConvTranspose(%x, %w", bias ? ", %b" : "", ") {",
      fused ? "activation = \"silu\", " : "", "group = ", groups, ", strides = ", List(strides),
      ", dilations = ", List(dilations), ", pads = ", List(begin),
      ", output_padding = ", List(more), "}\noutput %y");
}

// `text` with a residual of the result's shape.
std::string WithResidual(const std::string& text) {
  const NodeRun run(text);
  std::string with = text;
  const size_t call = with.find("reprise.Conv(");
  if (call == std::string::npos) return text;
  const size_t close = with.find(')', call);
  with.insert(close, run.node().input(2) != kNone ? ", %r" : ", _, %r");
  const size_t line = with.find("%y: ?");
  with.insert(line, absl::StrCat("input %r: f32",
                                 List(*run.graph.value(run.node().outputs[0]).shape), "\n"));
  return with;
}

class WindowsTest : public testing::TestWithParam<Isa> {
 protected:
  // Every option of the node, by several parts. They give the same bits.
  void Check(const std::string& text, uint32_t seed) {
    SCOPED_TRACE(text);
    NodeRun run(text, seed);
    const Tensor expected = run.Reference()[0];
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    for (const KernelOption& option : options) {
      SCOPED_TRACE(option.kernel);
      const Tensor whole = run.RunOption(device_, option, 1)[0];
      ExpectNear(whole, expected);
      for (int parts : {2, 5, 40}) {
        EXPECT_EQ(run.RunOption(device_, option, parts)[0], whole) << parts << " parts";
      }
    }
  }

  CpuDevice device_{GetParam()};
};

TEST_P(WindowsTest, ConvolutionsOfEachChannelByItselfAgreeWithTheReference) {
  Draw draw(1);
  for (uint32_t round = 0; round < 150 && !HasFailure(); ++round) {
    const std::string text =
        ConvText(draw, draw.From({1, 2, 2, 2}), draw.From({1, 2, 7, 33}), 1, draw.From({1, 1, 2}));
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

TEST_P(WindowsTest, ConvolutionsAsProductsAgreeWithTheReference) {
  Draw draw(2);
  for (uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    const std::string text =
        ConvText(draw, draw.From({1, 2, 2, 2, 3}), draw.From({1, 1, 1, 2}),
                 draw.From({2, 3, 5, 16, 17, 40}), draw.From({1, 3, 8, 9, 16, 47, 48, 49, 60}));
    Check(draw.Chance(3) ? WithResidual(text) : text, round);
  }
}

TEST_P(WindowsTest, TransposedConvolutionsAgreeWithTheReference) {
  Draw draw(4);
  for (uint32_t round = 0; round < 200 && !HasFailure(); ++round) {
    std::string text = ConvTransposeText(draw, draw.From({1, 2, 2, 2, 3}));
    const size_t param = text.find("param %w: ");
    if (param != std::string::npos) text.insert(text.find('\n', param), " = p0");
    Check(text, round);
  }
}

TEST_P(WindowsTest, TransposedConvolutionsIntoFewMapsAgreeWithTheReference) {
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

// The lone window of a plane in front lies in the padding, or a plane has as many windows as
// elements in other rows: a window is no element there.
TEST_P(WindowsTest, WindowsOfOneTapMayLieOutsideOfThePlane) {
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

// So many channels that a sum is added up stretch by stretch.
TEST_P(WindowsTest, TransposedConvolutionsOfManyChannelsAgreeWithTheReference) {
  Check(
      "input %x: f32[1, 1100, 3, 20]\nparam %w: f32[1100, 9, 5, 5] = p0\n%y: ? = "
      "ConvTranspose(%x, %w) {strides = [1, 2], pads = [2, 2, 2, 2]}\noutput %y",
      1);
}

// Most of the results that lie strides apart have no element, and there are pieces by the hundred
// thousand.
TEST_P(WindowsTest, TransposedConvolutionsOfLargeStridesAgreeWithTheReference) {
  Check(
      "input %x: f32[2, 3, 130, 3]\ninput %w: f32[3, 2, 2, 1]\ninput %b: f32[2]\n%y: ? = "
      "ConvTranspose(%x, %w, %b) {strides = [64, 32], dilations = [3, 1]}\noutput %y",
      1);
}

// What a launch is planned for stays within bounds: plans only, nothing this large is run.
TEST_P(WindowsTest, ScratchOfConvolutionsIsBounded) {
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

TEST_P(WindowsTest, ConvolutionsWithComputedWeightsAgreeWithTheReference) {
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
TEST_P(WindowsTest, PackedWeightsAndPackedWindowsGiveTheSameBits) {
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

TEST_P(WindowsTest, TilesOfNeighbouringWindowsAgreeWithTheReference) {
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

// Small planes share a block with those of other elements.
TEST_P(WindowsTest, BatchMatesDoNotChangeABitOfTilesOfWindows) {
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

// Sums stay as exact as those of each window by
// itself.
TEST_P(WindowsTest, TilesOfWindowsAreAsExactAsSumsByWindow) {
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

// What is infinite or no number stays in the windows that see it, where it may become no number.
TEST_P(WindowsTest, TilesOfWindowsKeepInfinitiesWhereTheyAreSeen) {
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

TEST_P(WindowsTest, PoolsAgreeWithTheReference) {
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

TEST_P(WindowsTest, WholePlanesAgreeWithTheReference) {
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

TEST_P(WindowsTest, ResampledPlanesAgreeWithTheReference) {
  Draw draw(6);
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kCoordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                          "asymmetric", "half_pixel_symmetric"};
  constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  for (uint32_t round = 0; round < 120 && !HasFailure(); ++round) {
    const std::vector<int64_t> in = {draw.From({1, 2, 3}), draw.From({1, 3}),
                                     draw.From({1, 2, 5, 16, 17}),
                                     draw.From({1, 2, 7, 16, 17, 49})};
    const std::vector<int64_t> out = {in[0], in[1], draw.From({in[2], 2 * in[2], 1, 11, 33}),
                                      draw.From({in[3], 2 * in[3], 1, 15, 16, 31, 65})};
    Check(absl::StrCat("input %x: f32", List(in), "\nconst %s: i64[4] = {",
                       absl::StrJoin(out, ", "), "}\n%y: ? = Resize(%x, _, _, %s) {mode = \"",
                       kModes[draw.From({0, 1, 2})], "\", coordinate_transformation_mode = \"",
                       kCoordinates[draw.From({0, 1, 2, 3, 4})], "\", nearest_mode = \"",
                       kNearest[draw.From({0, 1, 2, 3})], "\"}\noutput %y"),
          round);
  }
}

TEST_P(WindowsTest, TheLargestOfWhatHoldsNanIsNan) {
  NodeRun run(
      "input %x: f32[1, 1, 9, 40]\n%y: ? = MaxPool(%x) {kernel_shape = [3, 3], pads = "
      "[1, 1, 1, 1]}\noutput %y");
  std::vector<float> x(9 * 40, -1);
  for (int64_t at : {0, 41, 170, 359}) x[at] = std::nanf("");
  x[200] = -INFINITY;
  run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {1, 1, 9, 40}, x);
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  ExpectNear(run.RunOption(device_, option, 1)[0], run.Reference()[0]);
}

INSTANTIATE_TEST_SUITE_P(Tiers, WindowsTest, testing::ValuesIn(cpu::TestedTiers()), cpu::TierName);

}  // namespace
}  // namespace reprise
