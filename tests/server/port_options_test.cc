#include "server/port_options.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(ConnectionSharesTest, AllPortsTogetherLeaveDescriptorsToTheProcess) {
  for (const int ports : {2, 3, 4}) {
    for (int64_t descriptors = 112; descriptors <= 1 << 20; descriptors += 1 + descriptors / 7) {
      const ConnectionShares shares = ShareConnections(descriptors, ports);
      EXPECT_GE(shares.clients, 4);
      EXPECT_GE(shares.spare, 4);
      EXPECT_GE(shares.scrapers, 4);
      const int64_t all = int64_t{ports} * (shares.clients + shares.spare) + shares.scrapers;
      EXPECT_LE(all, descriptors - 40) << descriptors << " descriptors, " << ports << " ports";
    }
  }
}

TEST(ConnectionSharesTest, ManyDescriptorsGiveEachPortAThird) {
  EXPECT_EQ(ShareConnections(1024, 2).clients, 341);
  EXPECT_EQ(ShareConnections(1024, 2).spare, 64);
  EXPECT_EQ(ShareConnections(3 << 18, 2).clients, 1 << 18);
}

}  // namespace
}  // namespace reprise
