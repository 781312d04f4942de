#include "runtime/base/uninitialized_string.h"

#include <gtest/gtest.h>

#include <string>

namespace reprise {
namespace {

TEST(UninitializedStringTest, HasTheSizeThatWasAskedFor) {
  for (const size_t size : {0, 1, 15, 16, 20, 30, 31, 1000, 40 << 20}) {
    std::string text;
    ResizeUninitialized(text, size);
    EXPECT_EQ(text.size(), size);
    EXPECT_EQ(text.data()[size], '\0');
  }
}

TEST(UninitializedStringTest, KeepsWhatItHad) {
  std::string text = "abc";
  for (const size_t size : {4, 40, 40000}) {
    ResizeUninitialized(text, size);
    EXPECT_EQ(text.substr(0, 3), "abc");
  }
  ResizeUninitialized(text, 2);
  EXPECT_EQ(text, "ab");
}

}  // namespace
}  // namespace reprise
