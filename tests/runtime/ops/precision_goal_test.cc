#include "runtime/ops/kit/precision_goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using testing::HasSubstr;

TEST(PrecisionGoalTest, AutoHasABoundAndFastMayHaveOne) {
  const auto bounded = PrecisionGoal::Parse("auto:0.9995");
  ASSERT_TRUE(bounded.ok()) << bounded.status();
  EXPECT_FALSE(bounded->fast);
  EXPECT_DOUBLE_EQ(bounded->cosine, 0.9995);
  EXPECT_EQ(bounded->ToString(), "auto:0.9995");
  const auto usual = PrecisionGoal::Parse("fast");
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_TRUE(usual->fast);
  EXPECT_DOUBLE_EQ(usual->cosine, 0.999);
  EXPECT_EQ(usual->ToString(), "fast:0.999");
  const auto fast = PrecisionGoal::Parse("fast:0.98");
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_DOUBLE_EQ(fast->cosine, 0.98);
}

TEST(PrecisionGoalTest, OtherTextsAreRefusedWithTheirFault) {
  for (const char* text : {"", "auto", "fp16", "Auto:0.9", "fastest", "int8:0.9"}) {
    EXPECT_THAT(PrecisionGoal::Parse(text).status().message(),
                HasSubstr("must be exact, bf16, int8, auto:COSINE, fast or fast:COSINE"))
        << text;
  }
  for (const char* bound : {"", "0", "1", "1.5", "-0.5", "nan", "inf", "0.9x", "0,9"}) {
    const std::string text = std::string("auto:") + bound;
    EXPECT_THAT(PrecisionGoal::Parse(text).status().message(),
                HasSubstr(std::string("has the bound \"") + bound + "\": a cosine must be above 0"))
        << text;
  }
}

}  // namespace
}  // namespace reprise
