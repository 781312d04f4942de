// Bodies come whole or byte by byte, by a length or in chunks; a malformed chunk is refused.
#include "server/http/body_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace reprise {
namespace {

using ::testing::HasSubstr;

struct Fed {
  absl::Status status;
  size_t taken = 0;
  bool whole = false;
  std::string body;
};

Fed Feed(BodyReader reader, absl::string_view bytes, size_t part) {
  Fed fed;
  while (fed.taken < bytes.size() && !reader.IsWhole()) {
    const absl::StatusOr<size_t> taken = reader.Add(bytes.substr(fed.taken, part));
    fed.status = taken.status();
    if (!taken.ok()) break;
    fed.taken += *taken;
  }
  fed.whole = reader.IsWhole();
  fed.body = reader.TakeBody();
  return fed;
}

constexpr size_t kParts[] = {1, 2, 3, 7, 1 << 20};

TEST(BodyReaderTest, LengthSaysWhereABodyEnds) {
  for (const size_t part : kParts) {
    const Fed fed = Feed(BodyReader(3), "abcGET", part);
    EXPECT_TRUE(fed.whole);
    EXPECT_EQ(fed.body, "abc");
    EXPECT_EQ(fed.taken, 3u);
  }
  EXPECT_TRUE(BodyReader(0).IsWhole());
  EXPECT_FALSE(Feed(BodyReader(4), "abc", 10).whole);
}

TEST(BodyReaderTest, ChunksAreJoinedAndWhatSurroundsThemIsPassedOver) {
  const std::string bytes = "2\r\nab\r\n0000A;name=\"v\"; x \r\n0123\r\n\r\n78\r\n";
  for (const absl::string_view end : {"0\r\n\r\n", "0;last\r\nField: value\r\nOther:\r\n\r\n"}) {
    const std::string all = bytes + std::string(end);
    for (const size_t part : kParts) {
      const Fed fed = Feed(BodyReader(std::nullopt), all + "GET", part);
      EXPECT_TRUE(fed.status.ok()) << fed.status;
      EXPECT_TRUE(fed.whole);
      EXPECT_EQ(fed.body, "ab0123\r\n\r\n78");
      EXPECT_EQ(fed.taken, all.size());
    }
  }
}

TEST(BodyReaderTest, WhatIsNoChunkIsRefusedHoweverItArrives) {
  for (const absl::string_view bytes :
       {"\r\n", "g\r\n", "-1\r\n", "0x1\r\n", ";a\r\n", "1\na\r\n", "1\r\rx",
        "2\r\nabc\r\n0\r\n\r\n", "1\r\na\n0\r\n\r\n", "0\r\n\n0\r\n\r\n", "0\r\nA: b\n\r\n",
        "1;\x01\r\n", "fffffffffffffffff\r\n", "2000000000000000\r\n"}) {
    for (const size_t part : kParts) {
      const Fed fed = Feed(BodyReader(std::nullopt), bytes, part);
      EXPECT_EQ(fed.status.code(), absl::StatusCode::kInvalidArgument) << bytes << " by " << part;
      EXPECT_FALSE(fed.whole);
    }
  }
}

TEST(BodyReaderTest, LinesBetweenChunksAreBounded) {
  for (const absl::string_view begin : {"5;a=", "0\r\nA: ", "000"}) {
    const char more = begin == "000" ? '0' : 'x';
    const std::string bytes = std::string(begin) + std::string(1 << 20, more);
    const Fed fed = Feed(BodyReader(std::nullopt), bytes, 1000);
    EXPECT_THAT(std::string(fed.status.message()), HasSubstr("more than")) << begin;
    EXPECT_LT(fed.taken, BodyReader::kMostTrailerBytes + 1000);
  }
}

TEST(BodyReaderTest, LengthThatIsOnlyAnnouncedHoldsLittle) {
  BodyReader reader(uint64_t{1} << 40);
  EXPECT_LE(reader.body().capacity(), BodyReader::kFirstBytes);
}

}  // namespace
}  // namespace reprise
