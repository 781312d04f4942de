#include "server/prefixes/prefix_events.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using Kind = PrefixEvent::Kind;

TEST(PrefixEventsTest, EachKindHasItsMembers) {
  const std::vector<PrefixEvent> events = {
      {.kind = Kind::kCleared},
      {.kind = Kind::kStored, .page = 1, .before = 0, .ids = {5, 200, 70'000}},
      {.kind = Kind::kStored, .page = 2, .before = 1, .ids = {5'000'000'000}},
      {.kind = Kind::kRemoved, .page = 0x0102030405060708},
  };
  const std::string text = EncodeBatch(0.5, events);
  const std::string one("\xcf\0\0\0\0\0\0\0\1", 9), two("\xcf\0\0\0\0\0\0\0\2", 9);
  const std::string wanted =
      std::string("\x93\xcb\x3f\xe0\0\0\0\0\0\0\x94", 11) + "\x91\xb0" + "AllBlocksCleared" +
      "\x95\xab" + "BlockStored" + "\x91" + one + "\xc0\x93\x05\xcd" + std::string("\0\xc8", 2) +
      "\xce" + std::string("\0\1\x11\x70", 4) + "\x03" +  //
      "\x95\xab" + "BlockStored" + "\x91" + two + one + "\x91\xcf" +
      std::string("\0\0\0\1\x2a\x05\xf2\0", 8) + "\x01" +  //
      "\x92\xac" + "BlockRemoved" + "\x91\xcf\x01\x02\x03\x04\x05\x06\x07\x08" + "\xc0";
  EXPECT_EQ(text, wanted);
}

TEST(PrefixEventsTest, LongListsSayTheirSizeInMoreBytes) {
  const std::string many = EncodeBatch(0, std::vector<PrefixEvent>(300));
  EXPECT_EQ(many.substr(10, 3), std::string("\xdc\x01\x2c", 3));
  const std::string more = EncodeBatch(0, std::vector<PrefixEvent>(70'000));
  EXPECT_EQ(more.substr(10, 5), std::string("\xdd\0\x01\x11\x70", 5));
}

}  // namespace
}  // namespace reprise
