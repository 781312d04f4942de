#include "server/http2/grpc_text.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using std::chrono::nanoseconds;

TEST(GrpcTextTest, TimeoutsHaveAUnitAndAtMostEightDigits) {
  EXPECT_EQ(ParseGrpcTimeout("10S"), nanoseconds(10'000'000'000));
  EXPECT_EQ(ParseGrpcTimeout("99999999m"), nanoseconds(99'999'999'000'000));
  EXPECT_EQ(ParseGrpcTimeout("7n"), nanoseconds(7));
  EXPECT_EQ(ParseGrpcTimeout("99999999H"), nanoseconds::max());
  for (const char* wrong : {"", "S", "10", "10s", "100000000S", "-1S", "1 S", "1.5S"}) {
    EXPECT_EQ(ParseGrpcTimeout(wrong), std::nullopt) << wrong;
  }
}

TEST(GrpcTextTest, MessagesKeepPrintableCharactersAlone) {
  EXPECT_EQ(PercentEncoded("input 'x': 100%"), "input 'x': 100%25");
  EXPECT_EQ(PercentEncoded("a\nb\xC3\xA9"), "a%0Ab%C3%A9");
}

TEST(GrpcTextTest, ContentTypesOfGrpcMayHaveASuffix) {
  EXPECT_TRUE(IsGrpcContent("application/grpc"));
  EXPECT_TRUE(IsGrpcContent("application/grpc+proto"));
  EXPECT_TRUE(IsGrpcContent("application/grpc;x=y"));
  EXPECT_FALSE(IsGrpcContent("application/grpc-web"));
  EXPECT_FALSE(IsGrpcContent("application/json"));
}

TEST(GrpcTextTest, BinaryMetadataMayLackItsPadding) {
  EXPECT_EQ(DecodeBinaryField("YWI="), "ab");
  EXPECT_EQ(DecodeBinaryField("YWI"), "ab");
  EXPECT_EQ(DecodeBinaryField("!"), std::nullopt);
}

}  // namespace
}  // namespace reprise
