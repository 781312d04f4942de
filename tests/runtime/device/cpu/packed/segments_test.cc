// Kernels of packed tokens give the same results next to other requests' tokens as alone.
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

class SegmentsTest : public DeviceOfTier {};

TEST_P(SegmentsTest, SumsBehindTheLastSegmentAreZero) {
  NodeRun run(
      "input %x: i64[41]\nconst %s: i32[4] = {0, 7, 7, 30}\n%y: ? = reprise.SegmentCumSum(%x, "
      "%s)\noutput %y");
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  const Tensor expected = run.Reference()[0];
  for (int parts : {1, 3, 7}) {
    const Tensor result = run.RunOption(device_, option, parts)[0];
    for (int64_t i = 0; i < 41; ++i) {
      EXPECT_EQ(result.span<int64_t>()[i], i < 30 ? expected.span<int64_t>()[i] : 0) << i;
    }
  }
}

// A place that its segment does not have is reported, the others are taken all the same; segments
// that are not there may name any.
TEST_P(SegmentsTest, APlaceBehindItsSegmentIsReported) {
  NodeRun run(
      "input %x: f32[9, 3]\ninput %i: i64[4]\nconst %s: i32[5] = {0, 4, 8, 8, 9}\n"
      "%y: ? = reprise.SegmentPick(%x, %i, %s)\noutput %y");
  run.inputs[1] = Tensor::FromVector<int64_t>(DType::kInt64, {4}, {-4, 4, 77, 0});
  const KernelOption option = device_.Options(run.graph, run.id).at(0);
  for (int parts : {1, 3}) {
    run.errors.errors.clear();
    const Tensor result = run.RunOption(device_, option, parts)[0];
    ASSERT_EQ(run.errors.errors.size(), 1u);
    EXPECT_EQ(run.errors.errors[0].element, 1);
    EXPECT_EQ(run.errors.errors[0].value, 4);
    EXPECT_EQ(run.errors.errors[0].low, -4);
    EXPECT_EQ(run.errors.errors[0].high, 3);
    const float* x = run.inputs[0]->span<float>().data();
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(result.span<float>()[i], x[i]);
      EXPECT_EQ(result.span<float>()[3 + i], x[4 * 3 + i]);  // Its first token.
      EXPECT_EQ(result.span<float>()[6 + i], 0);
      EXPECT_EQ(result.span<float>()[9 + i], x[8 * 3 + i]);
    }
  }
}

TEST(RoundingAttentionTest, IsTheSameInASegmentAndAloneInAnyNumberOfParts) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
    if (UsableIsa(isa) != isa) continue;
    SCOPED_TRACE(IsaName(isa));
    CpuDevice device(isa);
    const std::string attributes =
        "{num_heads = 2, packed_qkv = 1, scale = 0.2, precision = \"bf16\"}\noutput %y";
    NodeRun packed(
        "input %x: f32[170, 120]\nconst %s: i32[4] = {0, 19, 20, 170}\n"
        "%y: ? = reprise.SegmentAttention(%x, _, _, _, _, %s) " +
        attributes);
    const KernelOption option = device.Options(packed.graph, packed.id).at(0);
    EXPECT_EQ(option.kernel, isa.Covers(Isa::kAvx512Bf16)
                                 ? "segment_attention_bf16_" + std::string(IsaName(isa))
                                 : "segment_attention_" + std::string(IsaName(isa)));
    const Tensor got = packed.RunOption(device, option, 1)[0];
    for (int parts : {2, 5, 40}) {
      const Tensor divided = packed.RunOption(device, option, parts)[0];
      EXPECT_EQ(std::memcmp(divided.data(), got.data(), got.bytes()), 0) << parts << " parts";
    }
    for (const auto& [begin, end] : {std::pair{0, 19}, {19, 20}, {20, 170}}) {
      SCOPED_TRACE(testing::Message() << "tokens from " << begin << " to " << end);
      NodeRun alone("input %x: f32[1, " + std::to_string(end - begin) +
                    ", 120]\n%y: ? = reprise.Attention(%x) " + attributes);
      const float* tokens = packed.inputs[0]->span<float>().data();
      alone.inputs[0] =
          Tensor::FromVector<float>(DType::kFloat32, {1, end - begin, 120},
                                    std::vector<float>(tokens + begin * 120, tokens + end * 120));
      const Tensor expected =
          alone.RunOption(device, device.Options(alone.graph, alone.id).at(0), 3)[0];
      EXPECT_EQ(
          std::memcmp(expected.data(), got.span<float>().data() + begin * 40, expected.bytes()), 0);
      // The reference does not round.
      const std::vector<double> exact = alone.Reference()[0].ToDoubles();
      const std::vector<double> rounded = expected.ToDoubles();
      double largest = 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        largest = std::max(largest, std::abs(exact[i] - rounded[i]));
      }
      EXPECT_LT(largest, 0.05);
      EXPECT_EQ(largest > 1e-4, isa.Covers(Isa::kAvx512Bf16));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, SegmentsTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise
