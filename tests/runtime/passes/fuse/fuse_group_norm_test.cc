#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Groups of channels of [2, 6, 5], normalised, and the nodes after them.
std::string GroupNorm(int groups, absl::string_view rest, absl::string_view back = "2, 6, 5") {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 6, 5]
    param %scale: f32[)",
                      groups, "] = p0\n param %bias: f32[", groups, R"(] = p1
    param %w: f32[6, 1] = p2
    param %v: f32[1, 6, 1] = p3
    const %in: i64[3] = {0, )",
                      groups, ", -1}\n const %out: i64[3] = {", back, R"(}
    %r: ? = Reshape(%x, %in)
    %n: ? = InstanceNormalization(%r, %scale, %bias) {epsilon = 0.001}
    %s: ? = Reshape(%n, %out)
    )",
                      rest, "\n}");
}

std::string FusedOps(const std::string& text) {
  Graph graph = ParseSpecialized(text);
  EXPECT_TRUE(FuseGroupNorm()->Run(graph).ok());
  return OpsOf(graph);
}

TEST(FuseGroupNormTest, ScaleAndBiasOfChannelsJoinTheNorm) {
  for (const int groups : {1, 2, 3, 6}) {
    SCOPED_TRACE(groups);
    for (const char* rest :
         {"%m: ? = Mul(%s, %w)\n %y: ? = Add(%m, %v)\n output %y",
          "%m: ? = Mul(%v, %s)\n %y: ? = Add(%w, %m)\n output %y",
          "%y: ? = Mul(%s, %w)\n output %y", "%y: ? = Add(%s, %w)\n output %y", "output %s"}) {
      SCOPED_TRACE(rest);
      const std::string text = GroupNorm(groups, rest);
      ExpectSameAnswers(*FuseGroupNorm(), text);
      EXPECT_EQ(FusedOps(text), "GroupNormalization");
    }
  }
}

TEST(FuseGroupNormTest, WhatOthersReadOrIsNoWeightOfChannelsStays) {
  EXPECT_EQ(FusedOps(GroupNorm(2, "%m: ? = Mul(%s, %w)\n output %m\n output %s")),
            "Mul GroupNormalization");
  EXPECT_EQ(FusedOps(GroupNorm(2, "%m: ? = Mul(%s, %s)\n output %m")), "Mul GroupNormalization");
  EXPECT_EQ(FusedOps(GroupNorm(2, "%m: ? = Mul(%s, %x)\n output %m")), "Mul GroupNormalization");
  EXPECT_EQ(FusedOps(GroupNorm(2, "param %u: f32[5] = p4\n %m: ? = Mul(%s, %u)\n output %m")),
            "Mul GroupNormalization");
  EXPECT_EQ(FusedOps(GroupNorm(2, "%m: ? = Sub(%s, %w)\n output %m")), "Sub GroupNormalization");
}

TEST(FuseGroupNormTest, GroupsThatAreNotOfChannelsStay) {
  ExpectUnchanged(*FuseGroupNorm(), GroupNorm(5, "output %s"));
  ExpectUnchanged(*FuseGroupNorm(), GroupNorm(2, "output %s", "2, 5, 6"));
  ExpectUnchanged(*FuseGroupNorm(), GroupNorm(2, "output %s\n output %n"));
}

}  // namespace
}  // namespace reprise
