#include "runtime/device/cpu/simd/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/ops/kit/op.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr DType kTypes[] = {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16};

class QuantizeTest : public testing::TestWithParam<Isa> {
 protected:
  const QuantizeKernels& kernels() const { return QuantizeKernelsFor(GetParam()); }

  // Normal numbers, halves between steps, and numbers outside all steps.
  std::vector<float> Floats(int64_t count) {
    std::vector<float> x(count);
    std::normal_distribution<float> normal(0, 20);
    constexpr float kOdd[] = {0.5f, -1.5f, -0.0f, 2.5f, kInf, -kInf, kNan, 3e38f, 1e-45f};
    for (float& value : x) {
      value = random_() % 4 == 0 ? kOdd[random_() % std::size(kOdd)] : normal(random_);
    }
    return x;
  }
  // Powers of two among them, so that halves occur.
  std::vector<float> Scales(int64_t count) {
    std::vector<float> scales(count);
    for (float& scale : scales) {
      scale = random_() % 2 == 0 ? 1.0f : std::ldexp(1.0f + 0.001f * (random_() % 999), -5);
    }
    return scales;
  }
  static Tensor OfFloats(Shape shape, const std::vector<float>& values) {
    return Tensor::FromVector(DType::kFloat32, std::move(shape), values);
  }
  static Tensor Reference(absl::string_view op, const std::vector<std::optional<Tensor>>& inputs,
                          int64_t output_dtype) {
    Node node;
    node.op = std::string(op);
    node.attributes.Set("axis", int64_t{0});
    if (output_dtype != 0) node.attributes.Set("output_dtype", output_dtype);
    for (size_t i = 0; i < inputs.size(); ++i) {
      node.inputs.push_back(inputs[i].has_value() ? static_cast<ValueId>(i) : kNone);
    }
    node.outputs = {static_cast<ValueId>(inputs.size())};
    absl::StatusOr<std::vector<Tensor>> results = Evaluate(node, inputs, 1 << 20);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? (*results)[0] : Tensor();
  }

  // Checks that the kernel's bytes equal those that `op` gives, and none after them is touched.
  void ExpectSameBits(absl::string_view op, QuantizeFunction function, const Tensor& x,
                      const std::vector<float>& scale, const std::optional<Tensor>& zero,
                      int64_t output_dtype = 0) {
    const Shape scales = scale.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(scale.size())};
    const Tensor want = Reference(op, {x, OfFloats(scales, scale), zero}, output_dtype);
    const size_t bytes = want.num_elements() * DTypeSize(want.dtype());
    std::vector<std::byte> got(bytes + 64, std::byte{0x5a});
    function(x.data(), scale.data(), zero.has_value() ? zero->data() : nullptr, got.data(),
             x.num_elements());
    EXPECT_TRUE(bytes == 0 || std::memcmp(got.data(), want.data(), bytes) == 0)
        << op << " to or from " << DTypeName(zero.has_value() ? zero->dtype() : DType::kUndefined)
        << ", " << x.num_elements() << " elements";
    for (size_t i = bytes; i < got.size(); ++i) EXPECT_EQ(got[i], std::byte{0x5a}) << i - bytes;
  }

  std::mt19937 random_{11};
};

// Integers of any value.
Tensor RandomIntegers(DType dtype, const Shape& shape, std::mt19937& random) {
  return Tensor::Make(dtype, shape, [&](void* data) {
    auto* bytes = static_cast<uint8_t*>(data);
    const size_t count = static_cast<size_t>(NumElements(shape)) * DTypeSize(dtype);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(random());
  });
}

constexpr int64_t kCounts[] = {0,  1,  2,  3,  5,  7,  8,  9,   13,  15,
                               16, 17, 31, 32, 33, 61, 64, 127, 1009};

TEST_P(QuantizeTest, OneScaleGivesTheBitsOfTheReference) {
  for (const DType dtype : kTypes) {
    for (const int64_t count : kCounts) {
      const Tensor x = OfFloats({count}, Floats(count));
      const Tensor steps = RandomIntegers(dtype, {count}, random_);
      const Tensor zero = RandomIntegers(dtype, {}, random_);
      const std::vector<float> scale = Scales(1);
      ExpectSameBits("QuantizeLinear", kernels().quantize(dtype, false), x, scale, zero);
      ExpectSameBits("DequantizeLinear", kernels().dequantize(dtype, false), steps, scale, zero);
      ExpectSameBits("reprise.FakeQuantize", kernels().fake(dtype, false), x, scale, zero);
    }
  }
}

TEST_P(QuantizeTest, ScalesOfNeighboursGiveTheBitsOfTheReference) {
  for (const DType dtype : kTypes) {
    for (const int64_t count : kCounts) {
      if (count < 2) continue;
      const Tensor x = OfFloats({count}, Floats(count));
      const Tensor steps = RandomIntegers(dtype, {count}, random_);
      const Tensor zero = RandomIntegers(dtype, {count}, random_);
      const std::vector<float> scale = Scales(count);
      ExpectSameBits("QuantizeLinear", kernels().quantize(dtype, true), x, scale, zero);
      ExpectSameBits("DequantizeLinear", kernels().dequantize(dtype, true), steps, scale, zero);
      ExpectSameBits("reprise.FakeQuantize", kernels().fake(dtype, true), x, scale, zero);
    }
  }
}

TEST_P(QuantizeTest, WithoutZeroPointItIsZero) {
  constexpr int64_t kInt8Number = 3;  // ONNX's for int8
  for (const bool many : {false, true}) {
    const int64_t count = 37;
    const std::vector<float> scale = Scales(many ? count : 1);
    const Tensor x = OfFloats({count}, Floats(count));
    ExpectSameBits("QuantizeLinear", kernels().quantize(DType::kInt8, many), x, scale, std::nullopt,
                   kInt8Number);
    ExpectSameBits("QuantizeLinear", kernels().quantize(DType::kUInt8, many), x, scale,
                   std::nullopt);
    ExpectSameBits("reprise.FakeQuantize", kernels().fake(DType::kUInt8, many), x, scale,
                   std::nullopt);
    ExpectSameBits("DequantizeLinear", kernels().dequantize(DType::kInt32, many),
                   RandomIntegers(DType::kInt32, {count}, random_), scale, std::nullopt);
    ExpectSameBits("DequantizeLinear", kernels().dequantize(DType::kInt8, many),
                   RandomIntegers(DType::kInt8, {count}, random_), scale, std::nullopt);
  }
}

TEST_P(QuantizeTest, RangeHoldsEachNumber) {
  for (const int64_t count : kCounts) {
    const std::vector<float> x = Floats(count);
    float low = 0, high = 0, want_low = 0, want_high = 0;
    kernels().range(x.data(), count, low, high);
    for (const float value : x) {
      if (value < want_low) want_low = value;
      if (value > want_high) want_high = value;
    }
    EXPECT_EQ(low, want_low);
    EXPECT_EQ(high, want_high);
  }
  // One number among NaN, at each place, widens the range from before.
  for (size_t at = 0; at < 100; ++at) {
    std::vector<float> x(100, kNan);
    x[at] = at % 2 == 0 ? -7.0f : 7.0f;
    float low = -1, high = 1;
    kernels().range(x.data(), 100, low, high);
    EXPECT_EQ(low, at % 2 == 0 ? -7.0f : -1.0f);
    EXPECT_EQ(high, at % 2 == 0 ? 1.0f : 7.0f);
  }
}

TEST_P(QuantizeTest, OtherDtypesHaveNoKernel) {
  EXPECT_EQ(kernels().quantize(DType::kInt32, false), nullptr);
  EXPECT_EQ(kernels().fake(DType::kInt32, false), nullptr);
  for (const DType dtype : {DType::kInt64, DType::kFloat32, DType::kBool}) {
    EXPECT_EQ(kernels().quantize(dtype, false), nullptr);
    EXPECT_EQ(kernels().dequantize(dtype, true), nullptr);
    EXPECT_EQ(kernels().fake(dtype, false), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, QuantizeTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
