// Convolutions and sums of bytes over random forms, bit by bit as their reference kernels on every
// tier: sizes around the vectors' width, signs, zero points, activations, scales that saturate.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

class BytePlanesTest : public testing::TestWithParam<Isa> {
 protected:
  int64_t Among(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  std::string Byte() { return OneIn(2) ? "u8" : "i8"; }

  // Returns a scale of results, whose floats are about `size`: sometimes steps are far too small or
  // large.
  std::string Scale(double size) {
    const double by =
        OneIn(9) ? (OneIn(2) ? 1e-30 : 1e30) : 0.002 * static_cast<double>(Between(1, 30));
    return absl::StrCat("const %u: f32[] = {", size * by, "}\n");
  }
  std::string Activation() {
    const int64_t which = Between(1, 6);
    if (which == 1) return ", activation = \"relu\"";
    if (which == 2) return ", activation = \"clip\", low = -30.0, high = 900.0";
    if (which == 3) return ", activation = \"clip\", low = -500.0";
    if (which == 4) return ", activation = \"hard_swish\"";
    return "";
  }

  struct Plane {
    int64_t rows, columns, row_taps, column_taps;
  };
  Plane APlane() {
    Plane p = {Between(1, 9), Among({1, 2, 5, 7, 13, 19}), Among({1, 2, 3, 3, 5}),
               Among({1, 3, 3, 4})};
    return p;
  }
  // Windows of `p` that exist.
  std::string WindowsOf(const Plane& p) {
    const bool dilated = OneIn(5);
    const int64_t down = dilated ? 2 : 1, along = dilated ? 3 : 1;
    const int64_t high = std::max<int64_t>((p.row_taps - 1) * down + 1 - p.rows, 0);
    const int64_t wide = std::max<int64_t>((p.column_taps - 1) * along + 1 - p.columns, 0);
    return absl::StrCat("pads = [", Between(0, 2), ", ", Between(0, 2), ", ", high + Between(0, 1),
                        ", ", wide + Between(0, 1), "], strides = [", Between(1, 2), ", ",
                        Between(1, 3), "], dilations = [", down, ", ", along, "]");
  }

  // Runs one node by every option, cut into several numbers of parts.
  void Check(const std::string& text, uint32_t seed) {
    SCOPED_TRACE(text);
    NodeRun run(text, seed);
    Check(run);
  }
  void Check(NodeRun& run) {
    const Tensor expected = run.Reference()[0];
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    for (const KernelOption& option : options) {
      for (const int parts : {1, 3}) {
        SCOPED_TRACE(absl::StrCat(option.kernel, " in ", parts, " parts"));
        const Tensor got = run.RunOption(device_, option, parts)[0];
        ASSERT_EQ(got.bytes(), expected.bytes());
        const auto* a = static_cast<const uint8_t*>(got.data());
        const auto* b = static_cast<const uint8_t*>(expected.data());
        for (size_t i = 0; i < got.bytes(); ++i) {
          ASSERT_EQ(int{a[i]}, int{b[i]}) << "element " << i;
        }
      }
    }
  }

  // Returns the operands after weights of `maps` maps, and the node.
  std::string Rest(const std::string& x, const std::string& w, int64_t maps, double size,
                   const std::string& attributes) {
    const bool weights_move = w == "u8" ? OneIn(2) : OneIn(4);
    const std::string y = Byte();
    return absl::StrCat("input %s: f32[]\ninput %t: f32[", OneIn(2) ? absl::StrCat(maps) : "",
                        "]\ninput %z: ", x, "[]\ninput %q: ", w, "[",
                        OneIn(2) ? absl::StrCat(maps) : "", "]\nparam %b: f32[", maps, "] = p1\n",
                        Scale(size), "input %v: ", y,
                        "[]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, ", OneIn(4) ? "_" : "%z",
                        ", ", weights_move ? "%q" : "_", ", ", OneIn(4) ? "_" : "%b",
                        ", _, %u, %v) {", attributes, Activation(), "}\noutput %y");
  }

  std::mt19937_64 random_{17};
  CpuDevice device_{GetParam()};
};

TEST_P(BytePlanesTest, ConvolutionsWithChannelsLastEqualTheReference) {
  for (uint32_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) {
    const Plane p = APlane();
    const int64_t groups = Among({1, 1, 2}), channels = Among({1, 3, 4, 5, 16, 31});
    const int64_t maps = Among({8, 15, 16, 17, 33, 48, 49, 64, 97});
    const std::string x = Byte(), w = Byte();
    Check(
        absl::StrCat("input %x: ", x, "[", Between(1, 2), ", ", p.rows, ", ", p.columns, ", ",
                     groups * channels, "]\nparam %w: ", w, "[", groups * maps, ", ", channels,
                     ", ", p.row_taps, ", ", p.column_taps, "] = p0\n",
                     Rest(x, w, groups * maps, 9000.0 * static_cast<double>(channels),
                          absl::StrCat("group = ", groups, ", layout = \"last\", ", WindowsOf(p)))),
        seed);
  }
}

// Floats, with a residual or without, from more rows than are copied at a time, from rows so long
// that few are, from windows of one element that move by more than one.
TEST_P(BytePlanesTest, ConvolutionsOfLargePlanesEqualTheReference) {
  for (uint32_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    const bool deep = OneIn(4);
    const int64_t batch = Among({1, 3}), size = deep ? 2 : Among({12, 17, 23});
    const int64_t channels = deep ? Among({1100, 3001}) : Among({7, 16, 33});
    const int64_t taps = Among({1, 3}), stride = Between(1, 2), pad = taps / 2;
    const int64_t maps = Among({8, 17, 48}), out = (size + 2 * pad - taps) / stride + 1;
    const std::string x = Byte(), w = Byte();
    NodeRun run(
        absl::StrCat("input %x: ", x, "[", batch, ", ", size, ", ", size, ", ", channels,
                     "]\nparam %w: ", w, "[", maps, ", ", channels, ", ", taps, ", ", taps,
                     "] = p0\nconst %s: f32[] = {0.5}\nconst %t: f32[] = {0.25}\ninput %z: ", x,
                     "[]\ninput %r: f32[", batch, ", ", out, ", ", out, ", ", maps,
                     "]\n%y: ? = reprise.IntegerConv(%x, %w, %s, %t, ", OneIn(3) ? "_" : "%z",
                     ", _, _, ", OneIn(2) ? "%r" : "_",
                     ") {layout = \"last\", activation = \"relu\", pads = [", pad, ", ", pad, ", ",
                     pad, ", ", pad, "], strides = [", stride, ", ", stride, "]}\noutput %y"),
        seed);
    Check(run);
  }
}

TEST_P(BytePlanesTest, ConvolutionsOfFewPlanesEqualTheReference) {
  for (uint32_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) {
    const Plane p = APlane();
    const int64_t channels = Between(1, 4), maps = Among({8, 16, 17, 32, 48, 64});
    const std::string x = Byte(), w = Byte();
    Check(absl::StrCat("input %x: ", x, "[", Between(1, 2), ", ", channels, ", ", p.rows, ", ",
                       p.columns, "]\nparam %w: ", w, "[", maps, ", ", channels, ", ", p.row_taps,
                       ", ", p.column_taps, "] = p0\n",
                       Rest(x, w, maps, 9000.0 * static_cast<double>(channels),
                            absl::StrCat("layout = \"to_last\", ", WindowsOf(p)))),
          seed);
  }
}

TEST_P(BytePlanesTest, ConvolutionsOfEachChannelByItselfEqualTheReference) {
  for (uint32_t seed = 1; seed <= 200 && !HasFatalFailure(); ++seed) {
    const Plane p = APlane();
    const int64_t channels = Among({16, 17, 24, 31, 32, 33, 47, 48, 63, 64, 65, 96, 127, 144, 200});
    const std::string x = Byte(), w = Byte();
    Check(
        absl::StrCat(
            "input %x: ", x, "[", Between(1, 2), ", ", p.rows, ", ", p.columns, ", ", channels,
            "]\nparam %w: ", w, "[", channels, ", 1, ", p.row_taps, ", ", p.column_taps, "] = p0\n",
            Rest(x, w, channels, 9000.0,
                 absl::StrCat("group = ", channels, ", layout = \"last\", ", WindowsOf(p)))),
        seed);
  }
}

TEST_P(BytePlanesTest, SumsEqualTheReference) {
  for (uint32_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) {
    const int64_t count = Among({1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 1000});
    const std::string a = Byte(), b = Byte(), y = Byte();
    Check(absl::StrCat("input %x: ", a, "[2, ", count, "]\ninput %w: ", b, "[2, ", count,
                       "]\ninput %s: f32[]\ninput %t: f32[]\n", Scale(200.0), "input %p: ", a,
                       "[]\ninput %q: ", b, "[]\ninput %v: ", y,
                       "[]\n%y: ? = reprise.IntegerAdd(%x, %w, %s, %t, %u, %p, %q, %v) {",
                       "note = 1", Activation(), "}\noutput %y"),
          seed);
  }
}

TEST_P(BytePlanesTest, TablesEqualTheReference) {
  for (uint32_t seed = 1; seed <= 40 && !HasFatalFailure(); ++seed) {
    const int64_t count = Among({0, 1, 15, 31, 32, 63, 64, 65, 127, 128, 129, 255, 1000, 4099});
    Check(absl::StrCat("input %x: ", Byte(), "[3, ", count, "]\ninput %t: ", Byte(),
                       "[256]\n%y: ? = reprise.ByteTable(%x, %t)\noutput %y"),
          seed);
  }
}

// Quotients that are halves but for their own rounding.
TEST_P(BytePlanesTest, HalvesAreRoundedAsDivisionDoes) {
  NodeRun run(
      "input %x: u8[256, 64]\ninput %w: u8[256, 64]\ninput %s: f32[]\ninput %t: f32[]\n"
      "input %u: f32[]\ninput %p: u8[]\ninput %q: u8[]\ninput %v: u8[]\n"
      "%y: ? = reprise.IntegerAdd(%x, %w, %s, %t, %u, %p, %q, %v)\noutput %y");
  const auto bytes = [](const Shape& shape, auto value) {
    return Tensor::Make(DType::kUInt8, shape, [&](void* data) {
      for (int64_t i = 0; i < NumElements(shape); ++i) {
        static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value(i));
      }
    });
  };
  const auto scale = [](float x) { return Tensor::FromVector<float>(DType::kFloat32, {}, {x}); };
  run.inputs[0] = bytes({256, 64}, [](int64_t i) { return i / 64; });
  run.inputs[1] = bytes({256, 64}, [](int64_t i) { return i % 64; });
  run.inputs[5] = bytes({}, [](int64_t) { return 3; });
  run.inputs[6] = bytes({}, [](int64_t) { return 0; });
  run.inputs[7] = bytes({}, [](int64_t) { return 40; });
  std::uniform_real_distribution<float> mantissa(1, 2);
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
    const float by = mantissa(random_) * 0.01f;
    SCOPED_TRACE(absl::StrCat("scale ", by));
    run.inputs[2] = scale(by);
    run.inputs[3] = scale(by * static_cast<float>(Between(1, 3)));
    run.inputs[4] = scale(by * (OneIn(2) ? 2.0f : static_cast<float>(Between(3, 9)) * 2.0f));
    Check(run);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, BytePlanesTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise
