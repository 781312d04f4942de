#include "runtime/base/format_text.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(FormatTextTest, TextOfAnyLengthIsWhole) {
  for (const size_t length : {0, 1, 505, 506, 507, 508, 5000}) {
    const std::string word(length, 'x');
    EXPECT_EQ(FormatText("%s %5.2f", word, 1.5), word + "  1.50") << length;
  }
  EXPECT_EQ(FormatText("%d of %s", int64_t{1} << 40, std::string("many")), "1099511627776 of many");
}

}  // namespace
}  // namespace reprise
