#include "server/text/stop_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

TEST(StopTextsTest, NoPartOfAStopTextIsToldWhereverTheTextIsCut) {
  const std::string text = "one END two ENDING";
  for (size_t size = 1; size <= text.size(); ++size) {
    StopTexts stops({"ENDING"}, /*keep=*/false);
    std::string told;
    for (size_t at = 0; at < text.size(); at += size) {
      told += stops.Push(text.substr(at, size));
      EXPECT_EQ(told, text.substr(0, told.size()));
      EXPECT_LE(told.size(), text.size() - 6);
    }
    ASSERT_NE(stops.hit(), nullptr) << size;
    EXPECT_EQ(*stops.hit(), "ENDING");
    EXPECT_EQ(told + stops.Finish(), "one END two ");
  }
}

TEST(StopTextsTest, WhatOnlyLooksLikeAStopTextIsToldAtTheEnd) {
  StopTexts stops({"</s>", "\n\n"}, /*keep=*/false);
  EXPECT_EQ(stops.Push("a\n"), "a");
  EXPECT_EQ(stops.Push("b</"), "\nb");
  EXPECT_EQ(stops.hit(), nullptr);
  EXPECT_EQ(stops.Finish(), "</");
}

TEST(StopTextsTest, TheFirstOfSeveralCountsAndMayBeKept) {
  StopTexts stops({"cd", "bc"}, /*keep=*/true);
  EXPECT_EQ(stops.Push("abcde"), "abc");
  EXPECT_EQ(*stops.hit(), "bc");
  EXPECT_EQ(stops.Push("more"), "");
  EXPECT_EQ(stops.Finish(), "");
}

TEST(StopTextsTest, AnyCutTellsTheTextUpToTheStop) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 24; ++i) text += static_cast<char>('a' + random() % 3);
    const std::vector<std::string> list = {"abca", "bb", "cabab"};
    StopTexts stops(list, /*keep=*/false);
    std::string told;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 4;
      told += stops.Push(text.substr(at, size));
      at += size;
    }
    told += stops.Finish();
    for (const std::string& stop : list) EXPECT_EQ(told.find(stop), std::string::npos) << text;
    EXPECT_EQ(told, text.substr(0, told.size()));
    EXPECT_EQ(stops.hit() == nullptr, told == text) << text;
  }
}

}  // namespace
}  // namespace reprise
