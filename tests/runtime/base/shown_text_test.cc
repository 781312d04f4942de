#include "runtime/base/shown_text.h"

#include <gmock/gmock.h>

#include <random>
#include <string>

namespace reprise {
namespace {

TEST(ShownTextTest, PrintableTextStaysAsItIs) {
  for (const std::string text : {"", "plain text", "größe \"x\" C:\\n", "日本語", "😀", "\\x1b"}) {
    EXPECT_EQ(Printable(text), text);
    EXPECT_TRUE(IsPrintable(text));
  }
}

TEST(ShownTextTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(Printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(Printable(std::string("\0\x1b[2J\x7f", 6)), "\\x00\\x1b[2J\\x7f");
  EXPECT_EQ(Printable("\u0085\u009b31m"), "\\u{85}\\u{9b}31m");
}

TEST(ShownTextTest, CharactersThatEndLinesOrTurnThemAroundAreEscaped) {
  EXPECT_EQ(Printable("a\u2028b\u2029c"), "a\\u{2028}b\\u{2029}c");
  EXPECT_EQ(Printable("\u202eevil\u2066\u200f\ufeff"), "\\u{202e}evil\\u{2066}\\u{200f}\\u{feff}");
}

TEST(ShownTextTest, BytesThatAreNoUtf8AreEscapedEach) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above 0x10ffff";
  EXPECT_EQ(Printable("\xe2\x82z"), "\\xe2\\x82z");
}

TEST(ShownTextTest, LongTextEndsInItsLengthOnACharactersBoundary) {
  EXPECT_EQ(ShownText("abcdef", 6), "abcdef");
  EXPECT_EQ(ShownText("abcdefg", 6), "abcdef… (7 bytes)");
  EXPECT_EQ(ShownText("aä", 2), "a… (3 bytes)");
  EXPECT_EQ(ShownText("ab😀c", 5), "ab… (7 bytes)");
  EXPECT_EQ(ShownText("ab😀c", 6), "ab😀… (7 bytes)");
  EXPECT_EQ(ShownText("\x80\x80\x80\x80\x80\x80", 4), "\\x80\\x80\\x80\\x80… (6 bytes)");
}

TEST(ShownTextTest, QuotesCannotBeLeft) {
  EXPECT_EQ(QuotedText("a\" code=\"OK\\"), R"("a\" code=\"OK\\")");
}

TEST(ShownTextTest, WhatIsPrintedOncePrintsTheSameAgain) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t length = random() % 40; text.size() < length;) {
      text += static_cast<char>(random() % 3 == 0 ? random() % 128 : random());
    }
    const std::string printable = Printable(text);
    EXPECT_TRUE(IsPrintable(printable)) << printable;
    EXPECT_EQ(Printable(printable), printable);
    for (const size_t most : {0, 1, 5, 17}) EXPECT_TRUE(IsPrintable(ShownText(text, most)));
  }
}

}  // namespace
}  // namespace reprise
