// The seeds of the fuzzers, whole, cut and changed: nothing breaks, and valid tokenizers load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/texts/feed.h"
#include "tests/fuzz/texts/seeds.h"

namespace reprise {
namespace {

TEST(TextSeedsTest, FilesLoadOrAreRefusedWithAReason) {
  for (const TextSeed& seed : TokenizerFileSeeds()) {
    const absl::Status fed = FeedTokenizerFile(seed.bytes);
    if (seed.loads) EXPECT_TRUE(fed.ok()) << seed.name << ": " << fed;
    if (!fed.ok()) EXPECT_FALSE(fed.message().empty()) << seed.name;
  }
}

TEST(TextSeedsTest, FilesThatAreCutOrChangedBreakNothing) {
  std::mt19937 random(1);
  for (const TextSeed& seed : TokenizerFileSeeds()) {
    for (int trial = 0; trial < 100; ++trial) {
      std::string bytes = seed.bytes;
      if (trial % 2 == 0) bytes.resize(random() % (bytes.size() + 1));
      for (unsigned changes = random() % 4; changes > 0 && bytes.size() > 1; --changes) {
        bytes[1 + random() % (bytes.size() - 1)] = static_cast<char>(random());
      }
      FeedTokenizerFile(bytes).IgnoreError();
    }
  }
}

TEST(TextSeedsTest, TextsKeepWhatIsPromised) {
  int answered = 0;
  for (const TextSeed& seed : TextSeeds()) answered += FeedText(seed.bytes).ok() ? 1 : 0;
  EXPECT_GT(answered, 60);
}

TEST(TextSeedsTest, TextsThatAreChangedBreakNothing) {
  std::mt19937 random(2);
  for (const TextSeed& seed : TextSeeds()) {
    for (int trial = 0; trial < 20; ++trial) {
      std::string bytes = seed.bytes;
      for (unsigned changes = 1 + random() % 8; changes > 0; --changes) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      FeedText(bytes).IgnoreError();
    }
  }
}

}  // namespace
}  // namespace reprise
