#include "server/transport/gzip.h"

#include <gtest/gtest.h>

#include "server/transport/inflate.h"

namespace reprise {
namespace {

TEST(GzipTest, OnlyClientsThatTakeItGetIt) {
  for (const char* yes : {"gzip", "deflate, GZIP", "br;q=1.0, gzip;q=0.5", "*", "*;q=0.1"}) {
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "gzip;q=0", "br", "*;q=0", "gzip; q=0, *", "gzip;q=x"}) {
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  }
}

TEST(GzipTest, TextComesBackAsItWas) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919 % 1000) + ",";
  const std::string made = Gzip(text);
  EXPECT_LT(made.size(), text.size());
  auto inflater = Inflater::Make("gzip", made, int64_t{1} << 30);
  ASSERT_TRUE(inflater.ok());
  absl::StatusOr<bool> whole = false;
  while (whole.ok() && !*whole) whole = (*inflater)->Step(1 << 20);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ((*inflater)->Take(), text);
}

}  // namespace
}  // namespace reprise
