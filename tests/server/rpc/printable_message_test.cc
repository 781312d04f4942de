#include "server/rpc/printable_message.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/admin.pb.h"

namespace reprise {
namespace {

TEST(PrintableMessageTest, TextsAtEachDepthBecomePrintable) {
  v1::ExplainMissesResponse message;
  v1::MissRecord& miss = *message.add_misses();
  miss.set_bucket("b1_s16");
  miss.add_waiters()->set_request_id("a\nb\x1b[2J");
  miss.add_waiters()->set_request_id("plain");
  MakePrintable(message);
  EXPECT_EQ(message.misses(0).bucket(), "b1_s16");
  EXPECT_EQ(message.misses(0).waiters(0).request_id(), "a\\nb\\x1b[2J");
  EXPECT_EQ(message.misses(0).waiters(1).request_id(), "plain");
}

TEST(PrintableMessageTest, RepeatedTextsAreCutAndBytesOfNoUtf8CanBeSent) {
  v1::AxisExplanation message;
  message.add_free_inputs("\xff");
  message.add_free_inputs(std::string(5000, 'a'));
  MakePrintable(message);
  EXPECT_EQ(message.free_inputs(0), "\\xff");
  EXPECT_EQ(message.free_inputs(1), std::string(2048, 'a') + "… (5000 bytes)");
}

}  // namespace
}  // namespace reprise
