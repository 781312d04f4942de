#include "runtime/base/hash64.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace reprise {
namespace {

// The values are written to disk: they must never change.
TEST(Hash64Test, ValuesAreThoseOfXxh3) {
  EXPECT_EQ(Hash64(""), 0x2d06800538d394c2u);
  EXPECT_NE(Hash64("a"), Hash64("b"));
  EXPECT_NE(Hash64("a", 1), Hash64("a", 2));
  EXPECT_EQ(Hash64("reprise"), Hash64(std::string("reprise")));
}

TEST(Hash64Test, HexKeyHasSixteenDigits) {
  EXPECT_EQ(HexKey(0x2a), "000000000000002a");
  EXPECT_EQ(HexKey(UINT64_MAX), "ffffffffffffffff");
}

}  // namespace
}  // namespace reprise
