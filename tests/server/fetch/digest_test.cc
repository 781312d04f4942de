#include "server/fetch/digest.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace reprise {
namespace {

TEST(DigestTest, MacsAreThoseOfTheStandard) {
  // RFC 4231, test cases 2 and 6.
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      absl::BytesToHexString(HmacSha256(std::string(131, '\xaa'),
                                        "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace reprise
