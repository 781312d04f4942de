#include "runtime/shapes/dim_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ExpressionSymbolsTest, SymbolsOfSumsAndProductsAreFound) {
  EXPECT_THAT(ExpressionSymbols("past + 1"), ElementsAre("past"));
  EXPECT_THAT(ExpressionSymbols("past_length+sequence"), ElementsAre("past_length", "sequence"));
  EXPECT_THAT(ExpressionSymbols("2 * n - 1 + m"), ElementsAre("n", "m"));
  EXPECT_THAT(ExpressionSymbols("batch-size"), ElementsAre("batch", "size"));
}

TEST(ExpressionSymbolsTest, NamesAndWhatIsNoSumHaveNone) {
  for (const char* text :
       {"", "batch", "input_ids:0", "1 + 2", "n + ", "+n", "((s0 - 1)//2) + 1", "Max(1, s0 + 1)"}) {
    EXPECT_THAT(ExpressionSymbols(text), IsEmpty()) << text;
  }
}

TEST(ReplaceSymbolsTest, OperatorsAndNumbersStay) {
  const auto replace = [](const std::string& symbol) { return symbol == "n" ? "m" : symbol; };
  EXPECT_EQ(ReplaceSymbols("2*n - 1+k", replace), "2 * m - 1 + k");
}

TEST(DimSizeTest, SumsOfSymbolsAreComputed) {
  const std::map<std::string, int64_t> axes = {{"past", 3}, {"sequence", 4}, {"a-b", 9}};
  const auto size = [&](const std::string& symbol) {
    return DimSize({.size = -1, .symbol = symbol}, axes);
  };
  EXPECT_EQ(*size("past"), 3);
  EXPECT_EQ(*size("past + 1"), 4);
  EXPECT_EQ(*size("past + sequence"), 7);
  EXPECT_EQ(*size("2*sequence - past+1"), 6);
  EXPECT_EQ(*size("a-b"), 9);
  EXPECT_EQ(*DimSize({.size = 5}, axes), 5);
  EXPECT_FALSE(size("past - sequence").ok());
  EXPECT_FALSE(size("future + 1").ok());
  EXPECT_FALSE(size("past +").ok());
  EXPECT_FALSE(size("9223372036854775807 + past").ok());
  EXPECT_FALSE(size("9223372036854775807 * past").ok());
}

}  // namespace
}  // namespace reprise
