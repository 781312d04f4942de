#include "server/repository/ranked_servables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "absl/strings/str_cat.h"
#include "server/repository/servable.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// Loads take as long as the test says, and fail at rank 6.
class RankedServablesTest : public testing::Test {
 protected:
  // Returns the servable of rank `rank` of x, waited for.
  absl::StatusOr<std::shared_ptr<const Servable>> Ask(int64_t rank) {
    std::promise<void> ready;
    const auto found = ranked_.Find({{"x", rank}}, [&] { return [&ready] { ready.set_value(); }; });
    if (!found.ok() || *found != nullptr) return found;
    ready.get_future().wait();
    return ranked_.Find({{"x", rank}}, [] { return [] {}; });
  }

  std::atomic<int> loads_ = 0;
  RankedServables ranked_{{"x"}, [this](const InputRanks& ranks) {
                            ++loads_;
                            return Loaded(ranks.at("x"));
                          }};

 private:
  static absl::StatusOr<std::shared_ptr<const Servable>> Loaded(int64_t rank) {
    if (rank == 6) return absl::InvalidArgumentError("a matrix has two dims");
    return std::make_shared<const Servable>();
  }
};

TEST_F(RankedServablesTest, ARankIsLoadedOnceForAllThatAsk) {
  const auto first = Ask(2), second = Ask(2);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, nullptr);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(loads_, 1);
  EXPECT_NE(*Ask(3), *first);
  EXPECT_EQ(loads_, 2);
  EXPECT_EQ(ranked_.Loaded().size(), 2u);
}

TEST_F(RankedServablesTest, BeyondFourChoicesIsRefusedNamingThem) {
  for (const int64_t rank : {1, 2, 3, 4}) ASSERT_TRUE(Ask(rank).ok());
  const absl::Status refused = Ask(5).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("rank 5 of input \"x\""));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("rank 3 of input \"x\""));
  EXPECT_EQ(loads_, 4);
  EXPECT_TRUE(Ask(4).ok()) << "those that are there are served";
}

TEST_F(RankedServablesTest, WhatNobodyAskedForIsNoChoice) {
  ranked_.Add({{"x", 0}}, std::make_shared<const Servable>());
  for (const int64_t rank : {1, 2, 3, 4}) EXPECT_TRUE(Ask(rank).ok());
  EXPECT_EQ(Ask(0).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RankedServablesTest, ARankThatTheModelDoesNotTakeIsRememberedAndNoChoice) {
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = Ask(6).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("does not take rank 6 of input \"x\": a matrix has two dims"));
  }
  EXPECT_EQ(loads_, 1);
  for (const int64_t rank : {1, 2, 3, 4}) EXPECT_TRUE(Ask(rank).ok());
}

TEST_F(RankedServablesTest, RanksThatNobodyHasAreRefusedWithoutALoad) {
  EXPECT_EQ(Ask(9).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(loads_, 0);
}

}  // namespace
}  // namespace reprise
