#include "server/http2/frame_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kWindow = 8,
                  kContinuation = 9;
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(uint8_t type, uint32_t stream, const std::string& body = "") {
  std::string bytes = {0, static_cast<char>(body.size() >> 8), static_cast<char>(body.size())};
  bytes += static_cast<char>(type);
  bytes += '\0';
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(stream >> shift);
  return bytes + body;
}

// A session that lists the frames it is given: "type:stream:body".
class FrameGateTest : public ::testing::Test {
 protected:
  void Receive(absl::string_view bytes) {
    gate.Receive(
        bytes, [this] { return MayOpen(); }, [this](absl::string_view part) { return Take(part); });
  }
  bool Release() {
    return gate.Release([this] { return MayOpen(); },
                        [this](absl::string_view part) { return Take(part); });
  }
  bool MayOpen() const { return open < most; }
  bool Take(absl::string_view part) {
    taken.append(part.data(), part.size());
    if (taken.size() < preface_left) return true;
    EXPECT_EQ(absl::string_view(taken).substr(0, preface_left), kPreface.substr(0, preface_left));
    taken.erase(0, std::exchange(preface_left, 0));
    while (taken.size() >= 9) {
      const auto byte = [this](size_t i) { return static_cast<uint8_t>(taken[i]); };
      const size_t size = 9 + byte(1) * 256 + byte(2);
      // A stream is open from its header on, whether that is whole or not.
      if (byte(3) == kHeaders && byte(8) > last) {
        last = byte(8);
        ++open;
      }
      if (taken.size() < size) break;
      frames.push_back(std::to_string(byte(3)) + ":" + std::to_string(byte(8)) + ":" +
                       taken.substr(9, size - 9));
      taken.erase(0, size);
    }
    return !fails;
  }
  void Begin() { Receive(kPreface); }
  std::vector<std::string> Frames() { return std::exchange(frames, {}); }

  FrameGate gate;
  size_t open = 0, most = 2;
  uint8_t last = 0;
  bool fails = false;
  size_t preface_left = kPreface.size();
  std::string taken;
  std::vector<std::string> frames;
};

TEST_F(FrameGateTest, AllPassesWhileStreamsMayBeOpened) {
  most = 100;
  const std::string bytes = Frame(kSettings, 0) + Frame(kHeaders, 1, "a") +
                            Frame(kContinuation, 1, "b") + Frame(kData, 1, "c") +
                            Frame(kHeaders, 3, "d");
  Begin();
  Receive(bytes);
  EXPECT_THAT(Frames(), ElementsAre("4:0:", "1:1:a", "9:1:b", "0:1:c", "1:3:d"));
  EXPECT_EQ(gate.held(), 0u);
}

TEST_F(FrameGateTest, CallsWaitForTheirTurnAndOpenOnesPassThem) {
  Begin();
  for (uint32_t stream : {1, 3, 5, 7}) Receive(Frame(kHeaders, stream, "h"));
  for (uint32_t stream : {1, 5, 3, 7}) Receive(Frame(kData, stream, "m"));
  Receive(Frame(kWindow, 1, "wwww") + Frame(kWindow, 5, "wwww") + Frame(kPing, 0, "pingping") +
          Frame(kSettings, 0) + Frame(kReset, 3, "rrrr"));
  EXPECT_THAT(Frames(), ElementsAre("1:1:h", "1:3:h", "0:1:m", "0:3:m", "8:1:wwww", "6:0:pingping",
                                    "4:0:", "3:3:rrrr"));
  EXPECT_FALSE(Release());
  open = 1;  // one of them is over
  EXPECT_TRUE(Release());
  EXPECT_THAT(Frames(), ElementsAre("1:5:h", "0:5:m", "8:5:wwww"));
  Receive(Frame(kData, 5, "n") + Frame(kData, 7, "n"));
  EXPECT_THAT(Frames(), ElementsAre("0:5:n"));
  open = 0;
  EXPECT_TRUE(Release());
  EXPECT_THAT(Frames(), ElementsAre("1:7:h", "0:7:m", "0:7:n"));
  EXPECT_EQ(gate.held(), 0u);
  EXPECT_FALSE(Release());
}

TEST_F(FrameGateTest, HeaderBlocksKeepTheirOrder) {
  most = 1;
  Begin();
  Receive(Frame(kHeaders, 1, "a") + Frame(kHeaders, 3, "b") + Frame(kContinuation, 3, "c") +
          Frame(kHeaders, 1, "trailers") + Frame(kHeaders, 5, "d"));
  EXPECT_THAT(Frames(), ElementsAre("1:1:a"));
  open = 0;
  EXPECT_TRUE(Release());
  EXPECT_THAT(Frames(), ElementsAre("1:3:b", "9:3:c", "1:1:trailers"));
  open = 0;
  EXPECT_TRUE(Release());
  EXPECT_THAT(Frames(), ElementsAre("1:5:d"));
}

TEST_F(FrameGateTest, FramesAreTheSameHoweverTheirBytesArrive) {
  std::string bytes(kPreface);
  for (uint32_t stream = 1; stream < 20; stream += 2) bytes += Frame(kHeaders, stream, "header");
  for (uint32_t stream = 1; stream < 20; stream += 2) bytes += Frame(kData, stream, "message");
  for (size_t part = 1; part < bytes.size(); part += 3) {
    gate = FrameGate();
    open = last = 0;
    preface_left = kPreface.size();
    frames.clear();
    taken.clear();
    for (size_t at = 0; at < bytes.size(); at += part) {
      Receive(absl::string_view(bytes).substr(at, part));
      // Some are over, in the middle of frames as well.
      if (open == most && (at / part) % 3 == 0) open = 0;
      Release();
    }
    for (int i = 0; i < 20; ++i) {
      open = 0;
      Release();
    }
    std::vector<std::string> headers, messages;
    for (const std::string& frame : Frames())
      (frame[0] == '1' ? headers : messages).push_back(frame);
    EXPECT_EQ(gate.held(), 0u) << part;
    EXPECT_THAT(taken, IsEmpty()) << part;
    ASSERT_EQ(headers.size(), 10u) << part;
    EXPECT_EQ(messages.size(), 10u) << part;
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(headers[i], "1:" + std::to_string(2 * i + 1) + ":header") << part;
    }
  }
}

TEST_F(FrameGateTest, NothingPassesAfterAFailure) {
  most = 1;
  Begin();
  Receive(Frame(kHeaders, 1, "a") + Frame(kHeaders, 3, "b") + Frame(kData, 3, "c"));
  open = 0;
  fails = true;
  EXPECT_TRUE(Release());
  EXPECT_THAT(Frames(), ElementsAre("1:1:a", "1:3:b"));
  EXPECT_EQ(gate.held(), 0u);
}

}  // namespace
}  // namespace reprise
