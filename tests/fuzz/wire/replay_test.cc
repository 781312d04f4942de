// The seeds of the fuzzers, fed whole and in parts: nothing breaks, attacks are cut off, and
// ordinary requests are answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/fuzz/wire/feed.h"
#include "tests/fuzz/wire/seeds.h"

namespace reprise {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kParts[] = {1 << 16, 1000, 7, 1};
// Byte by byte only short inputs.
constexpr size_t kMostBytesInSmallParts = 4 << 10;

TEST(WireSeedsTest, Http2AttacksAreCutOffAndTheRestIsNot) {
  for (const Seed& seed : Http2Seeds()) {
    for (const size_t part : kParts) {
      if (part < 100 && seed.bytes.size() > kMostBytesInSmallParts) continue;
      EXPECT_EQ(FeedHttp2(seed.bytes, {.part_bytes = part}).cut_off, seed.is_attack)
          << seed.name << " by " << part;
    }
  }
}

// Returns the payloads of the frames that answer: headers and data. Others (windows, a reset for
// data that the client still sends) depend on how far the server has read.
std::string AnswersIn(absl::string_view frames) {
  constexpr size_t kHead = 9;
  std::string answers;
  while (frames.size() >= kHead) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(frames[at]); };
    const size_t size = size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2);
    const absl::string_view payload = frames.substr(kHead, size);
    if (byte(3) <= 1) answers.append(payload.data(), payload.size());
    frames.remove_prefix(std::min(frames.size(), kHead + size));
  }
  return answers;
}

TEST(WireSeedsTest, Http2AnswersAreTheSameHoweverTheirRequestsArrive) {
  for (const Seed& seed : Http2Seeds()) {
    if (seed.is_attack || seed.varies) continue;
    const std::string whole = AnswersIn(FeedHttp2(seed.bytes, {}).answer);
    if (seed.name == "unary") {
      EXPECT_THAT(whole, HasSubstr("abc"));
    }
    EXPECT_FALSE(whole.empty()) << seed.name;
    if (seed.bytes.size() > kMostBytesInSmallParts) continue;
    EXPECT_EQ(AnswersIn(FeedHttp2(seed.bytes, {.part_bytes = 1}).answer), whole) << seed.name;
  }
}

TEST(WireSeedsTest, Http2RequestsThatAreCutAnywhereBreakNothing) {
  for (const Seed& seed : Http2Seeds()) {
    const size_t step = 1 + seed.bytes.size() / 200;
    for (size_t end = 0; end < seed.bytes.size(); end += step) {
      if (end > (1 << 16)) break;
      FeedHttp2(absl::string_view(seed.bytes).substr(0, end), {});
    }
  }
}

TEST(WireSeedsTest, Http1AttacksAreRefusedAndTheRestIsAnswered) {
  for (const Seed& seed : Http1Seeds()) {
    for (const size_t part : kParts) {
      if (part < 100 && seed.bytes.size() > kMostBytesInSmallParts) continue;
      const std::string answer = FeedHttp1(seed.bytes, {.part_bytes = part}).answer;
      if (seed.is_attack) {
        EXPECT_THAT(answer, ContainsRegex("HTTP/1[.][01] (4|501)")) << seed.name << " by " << part;
        EXPECT_THAT(answer, Not(HasSubstr(" 200 OK"))) << seed.name << " by " << part;
      } else {
        EXPECT_THAT(answer, HasSubstr(" 200 OK")) << seed.name << " by " << part;
      }
    }
  }
}

TEST(WireSeedsTest, Http1RequestsThatAreCutAnywhereBreakNothing) {
  for (const Seed& seed : Http1Seeds()) {
    const size_t step = 1 + seed.bytes.size() / 100;
    for (size_t end = 0; end < seed.bytes.size(); end += step) {
      FeedHttp1(absl::string_view(seed.bytes).substr(0, end), {});
    }
  }
}

// A server that drains, a client that vanishes, a connection above the limit: nothing breaks.
TEST(WireSeedsTest, WhateverHappensAroundARequestBreaksNothing) {
  for (const unsigned char byte : {0x20, 0x27, 0x40, 0x47, 0x80, 0x87, 0xe1}) {
    for (const Seed& seed : Http2Seeds()) {
      if (seed.bytes.size() > kMostBytesInSmallParts) continue;
      FeedHttp2(seed.bytes, ArrivalOf(byte, seed.bytes.size()));
    }
    for (const Seed& seed : Http1Seeds()) {
      FeedHttp1(seed.bytes, ArrivalOf(byte, seed.bytes.size()));
    }
  }
}

TEST(WireSeedsTest, SpareConnectionsHaveLittleRoom) {
  const std::string body(40 << 10, 'a');
  const std::string request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40960\r\n\r\n" + body;
  EXPECT_THAT(FeedHttp1(request, {}).answer, HasSubstr(" 200 OK"));
  EXPECT_THAT(FeedHttp1(request, {.is_spare = true}).answer, HasSubstr("HTTP/1.1 429"));
}

}  // namespace
}  // namespace reprise
