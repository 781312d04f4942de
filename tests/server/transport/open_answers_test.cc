#include "server/transport/open_answers.h"

#include <gtest/gtest.h>

#include <thread>

namespace reprise {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(OpenAnswersTest, WithoutAnyIsQuietAtOnce) {
  OpenAnswers answers;
  EXPECT_TRUE(answers.WaitUntilQuiet(milliseconds(1), hours(1)));
}

TEST(OpenAnswersTest, AnOpenOneIsWaitedForUntilTheTimeIsUp) {
  OpenAnswers answers;
  answers.Begin();
  EXPECT_FALSE(answers.WaitUntilQuiet(milliseconds(0), milliseconds(1)));
  std::thread end([&] { answers.End(); });
  EXPECT_TRUE(answers.WaitUntilQuiet(milliseconds(0), hours(1)));
  end.join();
}

TEST(OpenAnswersTest, QuietBeginsWithTheLastOne) {
  OpenAnswers answers;
  answers.Begin();
  const auto before = std::chrono::steady_clock::now();
  answers.End();
  EXPECT_TRUE(answers.WaitUntilQuiet(milliseconds(20), hours(1)));
  EXPECT_GE(std::chrono::steady_clock::now(), before + milliseconds(20));
}

TEST(OpenAnswersTest, ARefusalIsNoQuietEither) {
  OpenAnswers answers;
  const auto before = std::chrono::steady_clock::now();
  answers.Note();
  EXPECT_TRUE(answers.WaitUntilQuiet(milliseconds(20), hours(1)));
  EXPECT_GE(std::chrono::steady_clock::now(), before + milliseconds(20));
}

TEST(OpenAnswersTest, WithNoneOpenTheEndOfTheTimeIsNoLoss) {
  OpenAnswers answers;
  answers.Begin();
  answers.End();
  EXPECT_TRUE(answers.WaitUntilQuiet(hours(1), milliseconds(1)));
}

}  // namespace
}  // namespace reprise
