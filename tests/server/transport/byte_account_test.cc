#include "server/transport/byte_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST(ByteAccountTest, ConnectionHasALimitOfItsOwn) {
  ByteAccount account({.max_bytes = 1000, .max_connection_bytes = 600});
  HeldBytes first(account.Open());
  EXPECT_TRUE(first.Resize(600).ok());
  const absl::Status more = first.Resize(601);
  EXPECT_EQ(more.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(more.message()), HasSubstr("a connection may hold 600"));
  EXPECT_EQ(first.bytes(), 600);
  EXPECT_EQ(account.used(), 600);
}

TEST(ByteAccountTest, ConnectionsShareTheDaemonsLimit) {
  ByteAccount account({.max_bytes = 1000, .max_connection_bytes = 600});
  HeldBytes first(account.Open()), second(account.Open());
  EXPECT_TRUE(first.Resize(600).ok());
  const absl::Status more = second.Resize(500);
  EXPECT_THAT(std::string(more.message()),
              HasSubstr("500 more bytes: requests and answers in flight hold 600 bytes, and all "
                        "together may hold 1000"));
  first.Release();
  EXPECT_TRUE(second.Resize(500).ok());
}

TEST(ByteAccountTest, WhatIsMovedIsHeldOnce) {
  ByteAccount account({});
  const auto connection = account.Open();
  {
    HeldBytes first(connection);
    ASSERT_TRUE(first.Resize(10).ok());
    HeldBytes second = std::move(first);
    EXPECT_EQ(account.used(), 10);
    second = HeldBytes(connection);
    EXPECT_EQ(account.used(), 0);
    ASSERT_TRUE(second.Resize(7).ok());
    ASSERT_TRUE(second.Resize(3).ok());
    EXPECT_EQ(connection->used(), 3);
  }
  EXPECT_EQ(account.used(), 0);
}

TEST(ByteAccountTest, MuchThatIsGivenBackIsAFallOnce) {
  constexpr int64_t kMiB = 1 << 20;
  ByteAccount account({.max_bytes = 100 * kMiB});
  HeldBytes first(account.Open()), second(account.Open());
  ASSERT_TRUE(first.Resize(60 * kMiB).ok());
  ASSERT_TRUE(second.Resize(30 * kMiB).ok());
  EXPECT_FALSE(second.Resize(50 * kMiB).ok());
  EXPECT_EQ(account.CountFalls(), 0);
  first.Release();
  EXPECT_EQ(account.CountFalls(), 1);
  EXPECT_EQ(account.CountFalls(), 1);
  second.Release();
  EXPECT_EQ(account.CountFalls(), 2);
}

TEST(ByteAccountTest, LittleThatIsGivenBackIsNoFall) {
  ByteAccount account({});
  HeldBytes held(account.Open());
  ASSERT_TRUE(held.Resize(1 << 20).ok());
  held.Release();
  EXPECT_EQ(account.CountFalls(), 0);
}

TEST(ByteAccountTest, ManyConnectionsThatCloseAreAFall) {
  ByteAccount account({});
  std::vector<std::shared_ptr<ConnectionBytes>> crowd(1000);
  for (auto& connection : crowd) connection = account.Open();
  EXPECT_EQ(account.connections(), 1000);
  crowd.resize(600);
  EXPECT_EQ(account.CountFalls(), 0);
  crowd.resize(300);
  EXPECT_EQ(account.CountFalls(), 1);
}

}  // namespace
}  // namespace reprise
