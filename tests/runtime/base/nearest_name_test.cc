#include "runtime/base/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

const std::vector<std::string> kNames = {"--grpc-port", "--http-port", "--load-model", "explain"};

TEST(NearestNameTest, SlipsOfTheHandAreFound) {
  for (const auto& [slip, name] :
       {std::pair("--grpc-prot", "--grpc-port"), std::pair("--htp-port", "--http-port"),
        std::pair("--load-models", "--load-model"), std::pair("--load_model", "--load-model"),
        std::pair("explian", "explain"), std::pair("exp", "")}) {
    EXPECT_EQ(NearestName(slip, kNames), name) << slip;
  }
}

TEST(NearestNameTest, OtherWordsAndKnownNamesHaveNone) {
  for (const std::string& word : {std::string("--frobnicate"), std::string("x"), std::string(),
                                  std::string("explain"), std::string(100000, '-')}) {
    EXPECT_EQ(NearestName(word, kNames), "");
  }
}

TEST(NearestNameTest, SuggestionIsAHalfSentence) {
  EXPECT_EQ(DidYouMean("explan", kNames), "; did you mean explain?");
  EXPECT_EQ(DidYouMean("frobnicate", kNames), "");
}

}  // namespace
}  // namespace reprise
