#include "server/http2/message_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace reprise {
namespace {

using ::testing::HasSubstr;

std::string Framed(const std::string& body, size_t length) {
  std::string bytes(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift);
  return bytes + body;
}
std::string Framed(const std::string& body) { return Framed(body, body.size()); }

class MessageReaderTest : public ::testing::Test {
 protected:
  ByteAccount account{{.max_bytes = 1 << 20}};
  std::optional<MessageReader> made{std::in_place, 512 << 10, account.Open()};
  MessageReader& reader = *made;
};

TEST_F(MessageReaderTest, MessagesAreWholeHoweverTheirBytesArrive) {
  const std::string bytes = Framed("first") + Framed("") + Framed(std::string(40000, 'x'));
  for (const char byte : bytes) {
    ASSERT_TRUE(reader.Add(absl::string_view(&byte, 1)).ok());
  }
  EXPECT_FALSE(reader.IsInside());
  EXPECT_EQ(reader.Take().bytes, "first");
  EXPECT_EQ(reader.Take().bytes, "");
  EXPECT_EQ(reader.Take().bytes, std::string(40000, 'x'));
  EXPECT_FALSE(reader.HasMessage());
}

TEST_F(MessageReaderTest, WhatIsOnlyAnnouncedTakesLittle) {
  ASSERT_TRUE(reader.Add(Framed("abc", 500 << 10)).ok());
  EXPECT_TRUE(reader.IsInside());
  EXPECT_LT(account.used(), 32 << 10);
}

TEST_F(MessageReaderTest, LongMessageIsRefusedByItsLength) {
  const absl::Status status = reader.Add(Framed("", (512 << 10) + 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("524289"));
}

TEST_F(MessageReaderTest, MessagesHoldTheirBytesUntilTheyAreLetGo) {
  {
    ASSERT_TRUE(reader.Add(Framed(std::string(400 << 10, 'x'))).ok());
    const RpcMessage first = reader.Take();
    ASSERT_TRUE(reader.Add(Framed(std::string(400 << 10, 'x'))).ok());
    EXPECT_GE(account.used(), 800 << 10);
    const absl::Status third = reader.Add(Framed(std::string(400 << 10, 'x')));
    EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(third.message()), HasSubstr("1048576"));
    reader.Take();
  }
  made.reset();
  made.reset();
  EXPECT_EQ(account.used(), 0);
}

TEST_F(MessageReaderTest, EmptyMessagesAreCountedToo) {
  absl::Status status;
  int messages = 0;
  while (status.ok() && messages < 100000) {
    status = reader.Add(Framed(""));
    ++messages;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MessageReaderTest, UnknownFlagIsRefused) {
  EXPECT_EQ(reader.Add(absl::string_view("\7\0\0\0\0", 5)).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise
