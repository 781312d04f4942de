// Every seed is accepted, and some thousand changes of them never end the process.
#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/fuzz/files/feed.h"
#include "tests/fuzz/files/graph_texts.h"
#include "tests/fuzz/files/mutate.h"
#include "tests/fuzz/files/odd_models.h"
#include "tests/fuzz/files/seeds.h"

namespace reprise::fuzz {
namespace {

using Feed = bool (*)(absl::string_view);
using Mutate = std::string (*)(absl::string_view, Chance&);

// $REPRISE_FUZZ_FACTOR multiplies the number of changes that are tried; 1 where it is not set.
int Factor() {
  const char* factor = std::getenv("REPRISE_FUZZ_FACTOR");
  return factor == nullptr ? 1 : std::max(std::atoi(factor), 1);
}

// Returns how many of the changed seeds were taken. Changes pile up: each begins with the last one
// that was taken.
int FeedChanged(const std::vector<std::string>& seeds, Feed feed, Mutate mutate, int count) {
  google::protobuf::SetLogHandler(nullptr);  // a line for each message that is none
  Chance chance(7 + Factor());
  int taken = 0;
  std::string bytes;
  for (int i = 0; i < count * Factor(); ++i) {
    if (bytes.empty() || chance.OneIn(8)) bytes = chance.Of(seeds);
    std::string changed = mutate(bytes, chance);
    if (!feed(changed)) continue;
    ++taken;
    bytes = std::move(changed);
  }
  return taken;
}

TEST(FileSeedsTest, ModelsAreTakenAndChangedOnesEndNothing) {
  const auto seeds = OnnxSeeds(40);
  for (const std::string& seed : seeds) EXPECT_TRUE(FeedOnnx(seed));
  EXPECT_GT(FeedChanged(seeds, FeedOnnx, MutateOnnx, 4000), 200);
}

TEST(FileSeedsTest, GgufFilesAreTakenAndChangedOnesEndNothing) {
  const auto seeds = GgufSeeds();
  for (const std::string& seed : seeds) EXPECT_TRUE(FeedGguf(seed));
  EXPECT_GT(FeedChanged(seeds, FeedGguf, MutateBytes, 1000), 50);
}

TEST(FileSeedsTest, OddModelsAreReadOrRefused) {
  const auto odd = OddModels();
  int taken = 0;
  for (const std::string& model : odd) taken += FeedOnnx(model) ? 1 : 0;
  EXPECT_GT(taken, 30);
  EXPECT_LT(taken, static_cast<int>(odd.size()) - 30);
  for (const std::string& model : odd) FeedLoad(model);
  FeedChanged(odd, FeedOnnx, MutateOnnx, 2000);
}

TEST(FileSeedsTest, ChangedModelsAreLoadedOrRefused) {
  const auto seeds = OnnxSeeds(20);
  EXPECT_GT(FeedChanged(seeds, FeedLoad, MutateOnnx, 300), 10);
}

TEST(FileSeedsTest, GraphTextIsTakenAndChangedTextEndsNothing) {
  const auto seeds = GraphTextSeeds(40);
  for (const std::string& seed : seeds) EXPECT_TRUE(FeedGraphText(seed)) << seed;
  for (const std::string& text : RefusedGraphTexts()) EXPECT_FALSE(FeedGraphText(text)) << text;
  EXPECT_GT(FeedChanged(seeds, FeedGraphText, MutateBytes, 20000), 500);
}

TEST(FileSeedsTest, RecordsAreTakenAndChangedOnesEndNothing) {
  const auto seeds = RecordSeeds();
  for (const std::string& seed : seeds) EXPECT_TRUE(FeedRecord(seed));
  EXPECT_GT(FeedChanged(seeds, FeedRecord, MutateBytes, 5000), 100);
}

// Inputs that once broke a promise: one folder a target.
TEST(FileSeedsTest, WhatWasFoundStaysMended) {
  const std::map<std::string, Feed> feeds = {{"onnx", FeedOnnx},
                                             {"gguf", FeedGguf},
                                             {"load", FeedLoad},
                                             {"graph_text", FeedGraphText},
                                             {"record", FeedRecord}};
  const std::filesystem::path folder = std::filesystem::path(REPRISE_FUZZ_FOUND);
  for (const auto& [name, feed] : feeds) {
    if (!std::filesystem::exists(folder / name)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder / name)) {
      std::stringstream bytes;
      bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      feed(bytes.str());
    }
  }
}

}  // namespace
}  // namespace reprise::fuzz
