// Infinity, NaN, and the edges of types: ONNX's definition of them and, where it leaves them open,
// onnxruntime's; by the reference kernels and by every tier's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

class SpecialValuesTest : public DeviceOfTier {
 protected:
  // Runs `op` over `x` ("Gelu", "{approximate = \"tanh\"}") by every kernel that there is, on more
  // elements than the widest vector has, and compares: numbers to within 1e-6 of the larger of
  // their magnitude and 1, others exactly.
  template <typename X, typename Y>
  void Expect(const std::string& op, const std::vector<X>& x, DType of_x, const std::vector<Y>& y,
              const std::string& before = "", const std::string& operands = "%x") {
    SCOPED_TRACE(op);
    constexpr int kTimes = 7;
    std::vector<X> many;
    for (int i = 0; i < kTimes; ++i) many.insert(many.end(), x.begin(), x.end());
    const auto size = static_cast<int64_t>(many.size());
    NodeRun run(absl::StrCat(
        "input %x: ", DTypeName(of_x), "[", size, "]\n", before,
        "%y: ? = ", absl::StrReplaceAll(op, {{"(", absl::StrCat("(", operands)}}), "\noutput %y"));
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      if (run.graph.value(run.node().inputs[i]).name != "x") continue;
      run.inputs[i] = Tensor::FromVector<X>(of_x, {size}, many);
    }
    Compare(run.Reference()[0], y);
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      for (const int parts : {1, 3}) Compare(run.RunOption(device_, option, parts)[0], y);
    }
  }

  template <typename Y>
  static void Compare(const Tensor& got, const std::vector<Y>& wanted) {
    ASSERT_EQ(DTypeSize(got.dtype()), sizeof(Y));
    const auto* values = static_cast<const Y*>(got.data());
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const Y value = values[i], other = wanted[i % wanted.size()];
      if constexpr (std::is_floating_point_v<Y>) {
        if (std::isfinite(other)) {
          EXPECT_NEAR(value, other, 1e-6 * std::max<Y>(1, std::abs(other))) << i;
        } else {
          EXPECT_EQ(std::isnan(value), std::isnan(other)) << i;
          if (std::isinf(other)) EXPECT_EQ(value, other) << i;
        }
      } else {
        EXPECT_EQ(+value, +other) << i;
      }
    }
  }
};

const std::vector<float>& Edges() {
  static const auto* const edges =
      new std::vector<float>{kInf, -kInf, kNan, kMax, -kMax, 3e38f, -3e38f, 0, 1, -1, 100, -100};
  return *edges;
}

TEST_P(SpecialValuesTest, GeluAndItsSpellings) {
  const auto expect = [&](const std::string& op, float one, const std::string& before = "",
                          const std::string& operands = "%x") {
    Expect<float, float>(op, Edges(), DType::kFloat32,
                         {kInf, kNan, kNan, kMax, 0, 3e38f, 0, 0, one, one - 1, 100, 0}, before,
                         operands);
  };
  expect("Gelu()", 0.84134475f);
  expect("Gelu() {approximate = \"tanh\"}", 0.84119199f);
  expect("com.microsoft.FastGelu()", 0.84119199f);
  expect("com.microsoft.QuickGelu() {alpha = 1.702}", 0.84579569f);
  expect("com.microsoft.QuickGelu() {alpha = 1.0}", 0.73105858f);
  expect("com.microsoft.BiasGelu()", 0.84134475f,
         absl::StrCat("const %b: f32[84] = {", absl::StrJoin(std::vector<int>(84, 0), ", "), "}\n"),
         "%x, %b");
}

TEST_P(SpecialValuesTest, Sign) {
  Expect<float, float>("Sign()", Edges(), DType::kFloat32,
                       {1, -1, kNan, 1, -1, 1, -1, 0, 1, -1, 1, -1});
}

TEST_P(SpecialValuesTest, CastsOfWhatAnIntegerCannotHold) {
  constexpr int64_t kLeast = INT64_MIN;
  const std::vector<float> x = {
      kInf, -kInf, kNan,  kMax,         -1.5f,        127.9f,        128,           -129,
      255,  256,   65535, 2147483520.f, 2147483648.f, -2147483648.f, 9.2233715e18f, 9.2233720e18f};
  const auto cast = [](int to) { return absl::StrCat("Cast() {to = ", to, "}"); };
  Expect<float, int8_t>(cast(3), x, DType::kFloat32,
                        {0, 0, 0, 0, -1, 127, -128, 127, -1, 0, -1, -128, 0, 0, 0, 0});
  Expect<float, uint8_t>(cast(2), x, DType::kFloat32,
                         {0, 0, 0, 0, 255, 127, 128, 127, 255, 0, 255, 128, 0, 0, 0, 0});
  Expect<float, int16_t>(cast(5), x, DType::kFloat32,
                         {0, 0, 0, 0, -1, 127, 128, -129, 255, 256, -1, -128, 0, 0, 0, 0});
  const int32_t least = INT32_MIN;
  Expect<float, int32_t>(cast(6), x, DType::kFloat32,
                         {least, least, least, least, -1, 127, 128, -129, 255, 256, 65535,
                          2147483520, least, least, least, least});
  Expect<float, int64_t>(cast(7), x, DType::kFloat32,
                         {kLeast, kLeast, kLeast, kLeast, -1, 127, 128, -129, 255, 256, 65535,
                          2147483520, 2147483648, -2147483648, 9223371487098961920, kLeast});
  Expect<float, uint32_t>(cast(12), x, DType::kFloat32,
                          {0, 0x80000000, 0x80000000, 0, 0xffffffff, 127, 128, 0xffffff7f, 255, 256,
                           65535, 2147483520, 0x80000000, 0x80000000, 0, 0});
  Expect<float, uint8_t>(cast(9), {kInf, -kInf, kNan, 0, -0.0f, 1e-38f}, DType::kFloat32,
                         {1, 1, 1, 0, 0, 1});
  Expect<double, int32_t>(cast(6), {kInf, kNan, 2147483647.5, -2147483648.5, 2147483648, 1e300},
                          DType::kFloat64, {least, least, INT32_MAX, least, least, least});
  Expect<double, int64_t>(cast(7), {kInf, kNan, 9223372036854774784., 9223372036854775808., -1e300},
                          DType::kFloat64, {kLeast, kLeast, 9223372036854774784, kLeast, kLeast});
  Expect<double, float>(cast(1), {1e39, -1e39, kNan, 1e-46}, DType::kFloat64,
                        {kInf, -kInf, kNan, 0});
}

TEST_P(SpecialValuesTest, QuantisedIsTheNearestEvenNumberWithinTheType) {
  const std::vector<float> x = {kInf,  -kInf,  kNan,   kMax,    -kMax,  0.5f, 1.5f, 2.5f,  -0.5f,
                                -1.5f, 127.5f, 128.5f, -128.5f, 255.5f, 300,  -300, 1e10f, -1e10f};
  const auto quantize = [&](const std::string& zero) {
    return absl::StrCat("const %s: f32[] = {1}\nconst %z: ", zero, "\n");
  };
  Expect<float, int8_t>(
      "QuantizeLinear()", x, DType::kFloat32,
      {127, -128, -128, 127, -128, 0, 2, 2, 0, -2, 127, 127, -128, 127, 127, -128, 127, -128},
      quantize("i8[] = {0}"), "%x, %s, %z");
  Expect<float, uint8_t>("QuantizeLinear()", x, DType::kFloat32,
                         {255, 0, 0, 255, 0, 3, 5, 5, 3, 1, 131, 131, 0, 255, 255, 0, 255, 0},
                         quantize("u8[] = {3}"), "%x, %s, %z");
  Expect<float, int16_t>("QuantizeLinear()", x, DType::kFloat32,
                         {32767, -32768, -32768, 32767, -32768, 0, 2, 2, 0, -2, 128, 128, -128, 256,
                          300, -300, 32767, -32768},
                         quantize("i16[] = {0}"), "%x, %s, %z");
}

TEST_P(SpecialValuesTest, DynamicRangesThatAreNotFinite) {
  const auto expect = [&](const std::vector<float>& x, const std::vector<uint8_t>& y, float scale,
                          uint8_t zero) {
    NodeRun run(absl::StrCat("input %x: f32[", x.size(),
                             "]\n%y: ?, %s: ?, %z: ? = DynamicQuantizeLinear(%x)\n"
                             "output %y\noutput %s\noutput %z"));
    run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {static_cast<int64_t>(x.size())}, x);
    const auto check = [&](const std::vector<Tensor>& got) {
      Compare(got[0], y);
      Compare<float>(got[1], {scale});
      Compare<uint8_t>(got[2], {zero});
    };
    check(run.Reference());
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      for (const int parts : {1, 2}) check(run.RunOption(device_, option, parts));
    }
  };
  expect({kInf, 1, 2, 3}, {0, 0, 0, 0}, kInf, 0);
  expect({-kInf, 1, 2, 3}, {0, 255, 255, 255}, kInf, 255);
  expect({kNan, 1, 2, 3}, {0, 85, 170, 255}, 3.0f / 255, 0);
  expect({3e38f, -3e38f, 0, 1}, {0, 0, 0, 0}, kInf, 0);
  expect({0, 0, 0}, {0, 0, 0}, 1, 0);
}

// A row of four numbers, sampled at infinity and at no number: the latter is the place of the first
// border, and so is infinity where places are reflected.
TEST_P(SpecialValuesTest, PlacesOfAGridThatAreNotFinite) {
  struct Row {
    const char *outside, *mode;
    float infinity, minus_infinity, nan;
  };
  for (const Row& row :
       {Row{"border", "linear", 4, 1, 1}, Row{"border", "nearest", 4, 1, 1},
        Row{"zeros", "linear", 0, 0, 0.5f}, Row{"zeros", "nearest", 0, 0, 1},
        Row{"zeros", "cubic", 0, 0, 0.40625f}, Row{"reflection", "linear", 1, 1, 1},
        Row{"reflection", "nearest", 1, 1, 1},
        Row{"reflection", "cubic", 0.8125f, 0.8125f, 0.8125f}}) {
    SCOPED_TRACE(absl::StrCat(row.outside, " ", row.mode));
    NodeRun run(absl::StrCat(
        "input %x: f32[1, 1, 1, 4]\ninput %g: f32[1, 1, 3, 2]\n%y: ? = GridSample(%x, %g) "
        "{mode = \"",
        row.mode, "\", padding_mode = \"", row.outside, "\"}\noutput %y"));
    run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {1, 1, 1, 4}, {1, 2, 3, 4});
    run.inputs[1] =
        Tensor::FromVector<float>(DType::kFloat32, {1, 1, 3, 2}, {kInf, 0, -kInf, 0, kNan, 0});
    const std::vector<float> wanted = {row.infinity, row.minus_infinity, row.nan};
    Compare(run.Reference()[0], wanted);
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      Compare(run.RunOption(device_, option, 1)[0], wanted);
    }
  }
}

// Rows whose sum, or variance, no float holds.
TEST_P(SpecialValuesTest, NormsOfLargeNumbers) {
  const auto all = [](int value) { return absl::StrJoin(std::vector<int>(40, value), ", "); };
  NodeRun run(absl::StrCat("input %x: f32[3, 40]\nconst %g: f32[40] = {", all(2),
                           "}\nconst %b: f32[40] = {", all(3),
                           "}\n%y: ? = LayerNormalization(%x, %g, %b)\noutput %y"));
  std::vector<float> x(120, 3e38f);
  std::fill(x.begin() + 40, x.begin() + 80, 1e30f);
  x[41] = -1e30f;
  x[85] = kInf;
  run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {3, 40}, x);
  std::vector<float> wanted(120, 3);
  std::fill(wanted.begin() + 80, wanted.end(), kNan);
  Compare(run.Reference()[0], wanted);
  for (const KernelOption& option : device_.Options(run.graph, run.id)) {
    Compare(run.RunOption(device_, option, 1)[0], wanted);
  }
}

// Elements that negative pads cut off are not repeated.
TEST_P(SpecialValuesTest, PadsOfEitherSign) {
  struct Row {
    const char* mode;
    std::vector<float> wanted;
  };
  for (const Row& row : {Row{"constant", {2, 3, 4, 0, 0}}, Row{"edge", {2, 3, 4, 4, 4}},
                         Row{"wrap", {2, 3, 4, 2, 3}}, Row{"reflect", {2, 3, 4, 3, 2}}}) {
    SCOPED_TRACE(row.mode);
    NodeRun run(
        absl::StrCat("input %x: f32[4]\nconst %p: i64[2] = {-1, 2}\n%y: ? = Pad(%x, %p) {mode = \"",
                     row.mode, "\"}\noutput %y"));
    run.inputs[0] = Tensor::FromVector<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
    Compare(run.Reference()[0], row.wanted);
    for (const KernelOption& option : device_.Options(run.graph, run.id)) {
      for (const int parts : {1, 2}) Compare(run.RunOption(device_, option, parts)[0], row.wanted);
    }
  }
}

// Ids that count from the end where the op that they were sent to knows no such thing.
TEST_P(SpecialValuesTest, ARangeIsChecked) {
  for (const char* dtype : {"i32", "i64"}) {
    NodeRun run(absl::StrCat("input %x: ", dtype,
                             "[4]\n%y: ? = reprise.CheckRange(%x) {low = 0, high = 7}\noutput %y"));
    const bool wide = run.inputs[0]->dtype() == DType::kInt64;
    const auto tensor = [&](const std::vector<int64_t>& values) {
      if (wide) return Tensor::FromVector<int64_t>(DType::kInt64, {4}, values);
      return Tensor::FromVector<int32_t>(DType::kInt32, {4}, {values.begin(), values.end()});
    };
    run.inputs[0] = tensor({7, -1, 8, 0});
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_FALSE(options.empty());
    const Tensor got = run.RunOption(device_, options[0], 2)[0];
    std::vector<int64_t> values;
    for (const RecordedError& error : run.errors.errors) {
      EXPECT_EQ(error.low, 0);
      EXPECT_EQ(error.high, 7);
      values.push_back(error.value);
    }
    EXPECT_THAT(values, testing::UnorderedElementsAre(-1, 8));
    EXPECT_EQ(*got.ToInt64s(), (std::vector<int64_t>{7, 0, 0, 0}));
    run.inputs[0] = tensor({7, 3, 1, 0});
    EXPECT_EQ(*run.Reference()[0].ToInt64s(), (std::vector<int64_t>{7, 3, 1, 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, SpecialValuesTest, testing::ValuesIn(cpu::TestedTiers()),
                         cpu::TierName);

}  // namespace
}  // namespace reprise
