// Which orders of sums are offered to attention. Plans need no CPU: each tier is looked at, whether
// or not the machine has it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

INSTANTIATE_TEST_SUITE_P(Tiers, PlanAttentionTest, testing::ValuesIn(kIsas),
                         [](const testing::TestParamInfo<NamedIsa>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace reprise::cpu
