#include "server/prefixes/zmtp.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

std::string FrameOf(uint8_t flags, const std::string& body) {
  std::string out;
  AppendZmtpFrame(flags, body, out);
  return out;
}

TEST(ZmtpTest, OwnGreetingIsAPeers) {
  EXPECT_TRUE(CheckZmtpGreeting(ZmtpGreeting()).ok());
  std::string newer = ZmtpGreeting();
  newer[11] = 1;  // 3.1
  EXPECT_TRUE(CheckZmtpGreeting(newer).ok());
}

TEST(ZmtpTest, OtherGreetingsAreRefused) {
  std::string older = ZmtpGreeting(), other = ZmtpGreeting(), secure = ZmtpGreeting();
  older[10] = 2;
  other[0] = 'G';
  secure.replace(12, 5, "PLAIN");
  for (const std::string& wrong : {older, other, secure, ZmtpGreeting().substr(1)}) {
    EXPECT_FALSE(CheckZmtpGreeting(wrong).ok());
  }
}

TEST(ZmtpTest, FramesComeInPiecesOfAnySize) {
  const std::string large(300, 'x');
  const std::string bytes =
      FrameOf(ZmtpFrame::kCommand, "abc") + FrameOf(0, large) + FrameOf(1, "");
  for (const size_t step : {size_t{1}, size_t{7}, bytes.size()}) {
    ZmtpReader reader;
    std::vector<ZmtpFrame> frames;
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.Append(bytes.substr(at, step));
      for (auto next = reader.Next(); next.value().has_value(); next = reader.Next()) {
        frames.push_back(**next);
      }
    }
    ASSERT_EQ(frames.size(), 3);
    EXPECT_TRUE(frames[0].is_command());
    EXPECT_EQ(frames[0].body, "abc");
    EXPECT_EQ(frames[1].body, large);
    EXPECT_EQ(frames[2].flags, ZmtpFrame::kMore);
    EXPECT_EQ(frames[2].body, "");
  }
}

TEST(ZmtpTest, FrameLargerThanTheLimitIsRefusedBeforeItComes) {
  ZmtpReader reader;
  reader.Append(FrameOf(0, std::string(ZmtpReader::kMostBytes + 1, 'x')).substr(0, 9));
  EXPECT_FALSE(reader.Next().ok());
  ZmtpReader huge;
  huge.Append(std::string("\2\xff\xff\xff\xff\xff\xff\xff\xff", 9));
  EXPECT_FALSE(huge.Next().ok());
}

TEST(ZmtpTest, TypeOfTheSocketIsFoundAmongOtherProperties) {
  std::string ready = "\5READY";
  ready.append("\10Identity\0\0\0\0", 13).append("\13socket-type\0\0\0\3SUB", 19);
  EXPECT_EQ(ZmtpSocketType(ready), "SUB");
  for (size_t size = 0; size < ready.size(); ++size) {
    EXPECT_EQ(ZmtpSocketType(ready.substr(0, size)), "") << size;
  }
  EXPECT_EQ(ZmtpSocketType("\5ERROR"), "");
}

TEST(ZmtpTest, SubscriptionsAreMessagesOrCommands) {
  using Kind = ZmtpAsk::Kind;
  const auto ask = [](uint8_t flags, const std::string& body) {
    const ZmtpAsk read = ReadZmtpAsk({.flags = flags, .body = body});
    return std::pair(read.kind, read.text);
  };
  EXPECT_EQ(ask(0, "\1kv@"), std::pair(Kind::kSubscribe, std::string("kv@")));
  EXPECT_EQ(ask(0, "\1"), std::pair(Kind::kSubscribe, std::string()));
  EXPECT_EQ(ask(0, std::string("\0kv@", 4)), std::pair(Kind::kCancel, std::string("kv@")));
  EXPECT_EQ(ask(4, "\11SUBSCRIBEkv@"), std::pair(Kind::kSubscribe, std::string("kv@")));
  EXPECT_EQ(ask(4, "\6CANCELkv@"), std::pair(Kind::kCancel, std::string("kv@")));
  EXPECT_EQ(ask(4, std::string("\4PING\0\x0a", 7) + "words"),
            std::pair(Kind::kPing, std::string("words")));
  for (const char* other : {"", "\2kv@", "kv@"}) {
    EXPECT_EQ(ask(0, other).first, Kind::kNothing) << other;
  }
  EXPECT_EQ(ask(4, "\4PING").first, Kind::kNothing);
  EXPECT_EQ(ask(4, "\4PONG").first, Kind::kNothing);
}

}  // namespace
}  // namespace reprise
