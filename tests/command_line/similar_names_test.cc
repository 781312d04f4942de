#include "command_line/similar_names.h"

#include <gtest/gtest.h>

namespace reprise::command_line {
namespace {

TEST(SimilarNamesTest, NamesThatDifferInNumbersShareAPattern) {
  EXPECT_EQ(PatternOf("past_key_values.0.key"), PatternOf("past_key_values.17.key"));
  EXPECT_NE(PatternOf("past_key_values.0.key"), PatternOf("past_key_values.0.value"));
  EXPECT_EQ(PatternOf("12"), "#");
  EXPECT_EQ(PatternOf(""), "");
}

TEST(SimilarNamesTest, OneNameStandsForThoseOfItsKind) {
  const std::string names[] = {"ids", "past.0.key", "past.0.value", "past.1.key", "past.11.key"};
  EXPECT_EQ(JoinSimilar(names), "ids, past.0.key and 2 more of this kind, past.0.value");
  EXPECT_EQ(JoinSimilar({}), "");
}

}  // namespace
}  // namespace reprise::command_line
