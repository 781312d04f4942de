// Which orders of sums are offered to attention. Plans need no CPU: each tier is looked at, whether
// or not the machine has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/attention/attention_plans.h"
#include "tests/runtime/device/cpu/device_harness.h"

namespace reprise::cpu {
namespace {

std::set<std::string> AttentionOrders(const CpuTarget& target) {
  std::set<std::string> orders;
  for (const int64_t length : {1, 15, 16, 64, 95, 96, 128, 512}) {
    const std::string rows = absl::StrCat("f32[2, ", length, ", 128]\n");
    const NodeRun run(absl::StrCat("input %q: ", rows, "input %k: ", rows, "input %v: ", rows,
                                   "%y: ? = reprise.Attention(%q, %k, %v) {num_heads = 4}\n",
                                   "output %y"));
    for (const Candidate& candidate : PlanAttention(target, NodeView(run.graph, run.id))) {
      orders.insert(candidate.option.Order());
    }
  }
  return orders;
}

class PlanAttentionTest : public testing::TestWithParam<NamedIsa> {};

// The encoder of an answer's source is padded as far as its batch-mates are long.
TEST_P(PlanAttentionTest, RowsOfAnyLengthHaveOneOrderWhereOneIsPromised) {
  CpuTarget target(GetParam().isa);
  target.one_order = true;
  EXPECT_EQ(AttentionOrders(target).size(), 1u);
}

TEST(PlanAttentionOfTilesTest, OthersMayTakeLongRowsByTheTileUnit) {
  EXPECT_GT(AttentionOrders(CpuTarget(Isa::kAmx)).size(), 1u);
}

// Answers of a rounded precision depend on the row's own inputs, not on what it is padded to.
TEST_P(PlanAttentionTest, RoundedRowsOfAnyLengthHaveOneKernel) {
  std::set<std::string> kernels;
  for (const int64_t keys : {1, 128, 16384, 16385, 40000}) {
    const std::string rows = absl::StrCat("f32[2, ", keys, ", 128]\n");
    const NodeRun run(absl::StrCat(
        "input %q: f32[2, 3, 128]\ninput %k: ", rows, "input %v: ", rows,
        "%y: ? = reprise.Attention(%q, %k, %v) {num_heads = 4, precision = \"bf16\"}\n",
        "output %y"));
    const NodeView node(run.graph, run.id);
    CpuTarget target(GetParam().isa);
    target.one_order = true;
    for (const Candidate& candidate : PlanAttention(target, node)) {
      kernels.insert(candidate.option.kernel);
    }
  }
  EXPECT_EQ(kernels.size(), 1u);
}

TEST(RoundedLongRowsTest, MaskedKeysBeyondTheTilesOfExactRowsChangeNoBit) {
  constexpr int64_t kKeys = 16380, kPadded = 16390, kWidth = 32;
  const auto of_keys = [](int64_t keys) {
    const std::string rows = absl::StrCat("f32[1, ", keys, ", ", kWidth, "]\n");
    return absl::StrCat("input %q: f32[1, 3, ", kWidth, "]\ninput %k: ", rows, "input %v: ", rows,
                        "input %m: bool[1, 1, 1, ", keys, "]\n",
                        "%y: ? = reprise.Attention(%q, %k, %v, %m) {num_heads = 2, precision = "
                        "\"bf16\"}\noutput %y");
  };
  for (const Isa isa : {Isa::kAvx512Bf16, Isa::kAmx}) {
    // Others compute it in float32, as exact models do.
    if (UsableIsa(isa) != isa || RoundingAttentionKernelsFor(isa) == nullptr) continue;
    SCOPED_TRACE(IsaName(isa));
    CpuDevice device(isa);
    NodeRun padded(of_keys(kPadded)), own(of_keys(kKeys));
    own.inputs[0] = padded.inputs[0];
    for (const int i : {1, 2}) {
      const float* rows = padded.inputs[i]->span<float>().data();
      own.inputs[i] = Tensor::FromVector<float>(DType::kFloat32, {1, kKeys, kWidth},
                                                std::vector<float>(rows, rows + kKeys * kWidth));
    }
    std::vector<uint8_t> keep(kPadded, 0);
    std::fill_n(keep.begin(), kKeys, uint8_t{1});
    padded.inputs[3] = Tensor::FromVector<uint8_t>(DType::kBool, {1, 1, 1, kPadded}, keep);
    keep.resize(kKeys);
    own.inputs[3] = Tensor::FromVector<uint8_t>(DType::kBool, {1, 1, 1, kKeys}, keep);
    const auto answer = [&](NodeRun& run) {
      return run.RunOption(device, device.Options(run.graph, run.id).at(0), 2)[0];
    };
    const Tensor expected = answer(own), got = answer(padded);
    EXPECT_EQ(std::memcmp(expected.data(), got.data(), expected.bytes()), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, PlanAttentionTest, testing::ValuesIn(kIsas),
                         [](const testing::TestParamInfo<NamedIsa>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace reprise::cpu
