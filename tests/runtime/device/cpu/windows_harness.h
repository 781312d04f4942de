// Draws convolutions and windows: sizes around a vector, strides, dilations, padding, groups.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"

namespace reprise {

// Relative to the largest element: an activation may have made all of them small.
constexpr double kWindowsBound = 5e-5;

inline std::string List(absl::Span<const int64_t> values) {
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

inline std::string Dims(std::vector<int64_t> front, const std::vector<int64_t>& back) {
  front.insert(front.end(), back.begin(), back.end());
  return List(front);
}

// Returns a Conv or reprise.Conv in `groups` groups.
inline std::string ConvText(Draw& draw, size_t dims, int64_t groups, int64_t group_channels,
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

// Returns the reprise.Conv or reprise.ConvTranspose of `text` of planes whose channels lie last.
inline std::string WithChannelsLast(std::string text) {
  const size_t conv = text.find("%y: ? = Conv");
  if (conv != std::string::npos) text.replace(conv + 8, 4, "reprise.Conv");
  const size_t dims = text.find('[') + 1, end = text.find(']');
  std::vector<std::string> sizes = absl::StrSplit(text.substr(dims, end - dims), ", ");
  std::rotate(sizes.begin() + 1, sizes.begin() + 2, sizes.end());
  text.replace(dims, end - dims, absl::StrJoin(sizes, ", "));
  return text.insert(text.find('{') + 1, "layout = \"last\", ");
}

// Returns the same text, in which the results alone have their maps last.
inline std::string WithMapsLast(std::string text) {
  const size_t conv = text.find("%y: ? = Conv(");
  if (conv != std::string::npos) text.replace(conv + 8, 4, "reprise.Conv");
  return text.insert(text.find('{') + 1, "layout = \"to_last\", ");
}

// Returns a ConvTranspose whose weights are a parameter, a constant or computed.
inline std::string ConvTransposeText(Draw& draw, size_t dims) {
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

// Returns `text` with a residual of the result's shape.
inline std::string WithResidual(const std::string& text) {
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

// Checks nodes of windows on a device of each tier.
class WindowsOfTier : public DeviceOfTier {
 protected:
  // Checks every option of the node, by several parts. They give the same bits.
  void Check(const std::string& text, uint32_t seed) {
    SCOPED_TRACE(text);
    NodeRun run(text, seed);
    const Tensor expected = run.Reference()[0];
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    for (const KernelOption& option : options) {
      SCOPED_TRACE(option.kernel);
      const Tensor whole = run.RunOption(device_, option, 1)[0];
      ExpectClose(whole, expected, kWindowsBound);
      for (int parts : {2, 5, 40}) {
        EXPECT_EQ(run.RunOption(device_, option, parts)[0], whole) << parts << " parts";
      }
    }
  }
};

}  // namespace reprise
