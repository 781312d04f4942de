#include "runtime/graph/vocabulary.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

namespace reprise {
namespace {

std::shared_ptr<const Vocabulary> Colours() {
  auto vocabulary = std::make_shared<Vocabulary>();
  for (const char* text : {"red", "green", "red", ""}) vocabulary->Add(text);
  return vocabulary;
}

TEST(VocabularyTest, EqualTextsHaveOnePlaceAndNoneIsThatOfPadding) {
  const auto vocabulary = Colours();
  EXPECT_EQ(vocabulary->size(), 4);  // counts padding's
  for (const char* text : {"red", "green", ""}) {
    const std::optional<int64_t> place = vocabulary->Find(text);
    ASSERT_TRUE(place.has_value()) << text;
    EXPECT_NE(*place, Vocabulary::kNoText);
    EXPECT_EQ(vocabulary->text(*place), text);
  }
  EXPECT_FALSE(vocabulary->Find("blue").has_value());
}

TEST(VocabularyTest, ManyTextsStayWhereTheyAreWhileMoreAreAdded) {
  Vocabulary vocabulary;
  for (int i = 0; i < 10000; ++i) vocabulary.Add(std::to_string(i));
  for (int i = 0; i < 10000; ++i) {
    EXPECT_EQ(vocabulary.text(*vocabulary.Find(std::to_string(i))), std::to_string(i));
  }
}

TEST(RequestTextsTest, WhatTheModelDoesNotHaveGetsPlacesBehindItEqualForEqualTexts) {
  const auto vocabulary = Colours();
  RequestTexts texts(vocabulary);
  const std::string blue = "blue", other = "blue", zeros("a\0b", 3);
  EXPECT_EQ(texts.Place("green"), *vocabulary->Find("green"));
  EXPECT_EQ(texts.Place(blue), vocabulary->size());
  EXPECT_EQ(texts.Place(other), vocabulary->size());
  EXPECT_EQ(texts.Place(zeros), vocabulary->size() + 1);
  EXPECT_EQ(texts.Text(vocabulary->size()), "blue");
  EXPECT_EQ(texts.Text(vocabulary->size() + 1), absl::string_view(zeros));
  EXPECT_EQ(texts.Text(*vocabulary->Find("red")), "red");
}

TEST(RequestTextsTest, WhatIsNoPlaceHasNoText) {
  const auto vocabulary = Colours();
  const RequestTexts texts(vocabulary);
  EXPECT_FALSE(texts.Text(-1).has_value());
  EXPECT_FALSE(texts.Text(vocabulary->size()).has_value());
  EXPECT_FALSE(texts.Text(std::numeric_limits<int64_t>::max()).has_value());
}

TEST(TextForMessageTest, LongTextsAreCutAndBytesThatDoNotPrintEscaped) {
  EXPECT_EQ(TextForMessage("red"), "'red'");
  EXPECT_EQ(TextForMessage("\n"), "'\\n'");
  EXPECT_LT(TextForMessage(std::string(1000, '\xff')).size(), 400u);
}

}  // namespace
}  // namespace reprise
