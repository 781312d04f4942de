// A second start takes recipes from the store, and goes on where the store is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "runtime/engine/usage_keeper.h"
#include "runtime/recipe/record_file.h"
#include "tests/runtime/engine/server_start.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RecipeStoreEngineTest : public testing::Test {
 protected:
  // A start whose writes to the store wait for no thread.
  struct Start : ServerStart {
    explicit Start(const RecipeStoreEngineTest& test, const std::string& name = "mean",
                   bool frozen = false, CapturePool* captures = nullptr)
        : ServerStart(test.folder_,
                      {.model = {.id = {name, 1}}, .captures = captures, .frozen = frozen}) {}
    Response Run(int64_t rows, int64_t length) {
      const MeanRequest tokens(rows, length);
      return ServerStart::Run(tokens.request);
    }
  };

  std::vector<std::filesystem::path> Files(const std::string& kind) const {
    return folder_.Files(kind);
  }

  const StartFolder folder_{MaskedMeanModel()};
};

TEST_F(RecipeStoreEngineTest, SecondStartHasItsRecipesWithoutACapture) {
  std::string answer;
  {
    Start first(*this);
    answer = first.Run(1, 10).outputs[0].bytes;
    EXPECT_THAT(first.observer.of("mean").compiles, ElementsAre("b1_s16 first_request"));
    EXPECT_THAT(first.Logged("could not find recipe"), SizeIs(1));
  }
  EXPECT_THAT(Files("recipe"), SizeIs(1));
  Start second(*this);
  const Response response = second.Run(1, 10);
  EXPECT_EQ(response.outputs[0].bytes, answer);
  EXPECT_EQ(response.info.capture, CaptureOutcome::kWaited);
  EXPECT_EQ(second.Run(1, 9).info.capture, CaptureOutcome::kReplayed);
  EXPECT_THAT(second.observer.of("mean").compiles, IsEmpty());
  EXPECT_THAT(second.Logged("loaded recipe"), ElementsAre(HasSubstr("(b1_s16) from")));
}

TEST_F(RecipeStoreEngineTest, DamagedRecipeIsCapturedAgainAndReplaced) {
  Start(*this).Run(1, 10);
  const auto files = Files("recipe");
  ASSERT_THAT(files, SizeIs(1));
  std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) / 2);
  {
    Start second(*this);
    EXPECT_EQ(second.Run(1, 10).info.capture, CaptureOutcome::kCaptured);
    EXPECT_THAT(second.observer.of("mean").compiles, ElementsAre("b1_s16 store_corrupt"));
  }
  Start third(*this);
  third.Run(1, 10);
  EXPECT_THAT(third.observer.of("mean").compiles, IsEmpty());
}

TEST_F(RecipeStoreEngineTest, RecipeUnderTheNameOfAnotherIsNotUsed) {
  {
    Start first(*this);
    first.Run(1, 10);
    first.Run(1, 30);
  }
  const auto files = Files("recipe");
  ASSERT_THAT(files, SizeIs(2));
  std::filesystem::copy_file(files[0], files[1], std::filesystem::copy_options::overwrite_existing);
  Start second(*this);
  second.Run(1, 10);
  second.Run(1, 30);
  EXPECT_THAT(second.observer.of("mean").compiles, SizeIs(1));
  EXPECT_THAT(second.Logged("another one"), SizeIs(1));
}

TEST_F(RecipeStoreEngineTest, MostUsedRecipesAreKnownToTheNextStart) {
  {
    Start first(*this);
    first.Run(1, 10);
    first.Run(1, 10);
    first.Run(1, 100);
    for (int i = 0; i < 6; ++i) first.Run(1, 60);
    EXPECT_THAT(UsedBefore(*first.model), IsEmpty());
  }
  {
    Start second(*this);
    // Requests of 60 ran on the larger recipe that was there.
    EXPECT_THAT(UsedBefore(*second.model), ElementsAre(AxisSizes{{"batch", 1}, {"sequence", 128}},
                                                       AxisSizes{{"batch", 1}, {"sequence", 16}}));
    second.Run(1, 10);
    for (int i = 0; i < 8; ++i) second.Run(1, 10);
  }
  Start third(*this);
  EXPECT_THAT(UsedBefore(*third.model), ElementsAre(AxisSizes{{"batch", 1}, {"sequence", 16}},
                                                    AxisSizes{{"batch", 1}, {"sequence", 128}}));
}

TEST_F(RecipeStoreEngineTest, RenamedModelFindsItsCertificateItsRecipesAndTheirUse) {
  {
    Start first(*this);
    for (int i = 0; i < 3; ++i) first.Run(1, 10);
  }
  for (const bool frozen : {false, true}) {
    const std::string name = frozen ? "frozen" : "renamed";
    CapturePool captures({.urgent_threads = 1, .behind_threads = 1});
    Start second(*this, name, frozen, &captures);
    EXPECT_THAT(second.Logged("loaded certificate"), SizeIs(2));  // its live form has one, too
    EXPECT_THAT(second.Logged("could not find"), IsEmpty());
    const std::vector<AxisSizes> used = UsedBefore(*second.model);
    ASSERT_THAT(used, ElementsAre(AxisSizes{{"batch", 1}, {"sequence", 16}}));
    std::promise<absl::Status> ahead;
    second.engine->CaptureAhead(*second.model, used[0], CompileReason::kWarmup,
                                CaptureUrgency::kUrgent,
                                [&](const absl::Status& status) { ahead.set_value(status); });
    EXPECT_TRUE(ahead.get_future().get().ok());
    EXPECT_EQ(second.Run(1, 9).info.capture, CaptureOutcome::kReplayed);
    EXPECT_THAT(second.observer.of(name).compiles, IsEmpty());
  }
  EXPECT_THAT(Files("recipe"), SizeIs(1));
  EXPECT_THAT(Files("model"), SizeIs(2));
}

TEST_F(RecipeStoreEngineTest, NameKeepsItsOwnUseAndAddsStoredRecipesOfItsTwin) {
  {
    Start first(*this, "twin");
    for (int i = 0; i < 6; ++i) first.Run(1, 100);
  }
  {
    Start first(*this, "mean");
    for (int i = 0; i < 3; ++i) first.Run(1, 10);
  }
  const AxisSizes own = {{"batch", 1}, {"sequence", 16}};
  const AxisSizes twins = {{"batch", 1}, {"sequence", 128}};
  EXPECT_THAT(UsedBefore(*Start(*this, "mean").model), ElementsAre(own, twins));
  EXPECT_THAT(UsedBefore(*Start(*this, "twin").model), ElementsAre(twins, own));
  for (const std::filesystem::path& file : Files("recipe")) std::filesystem::remove(file);
  EXPECT_THAT(UsedBefore(*Start(*this, "mean").model), ElementsAre(own))
      << "captures for another model's traffic";
}

TEST_F(RecipeStoreEngineTest, DamagedUsageIsNoUsage) {
  {
    Start first(*this);
    first.Run(1, 10);
    first.Run(1, 10);
  }
  const auto files = Files("usage");
  ASSERT_THAT(files, SizeIs(1));
  const auto bytes = ReadWholeFile(files[0].string(), 1 << 20);
  ASSERT_TRUE(bytes.ok());
  const auto record = DecodeRecord(*bytes);
  ASSERT_TRUE(record.ok());
  std::string payload = record->payload;
  payload[payload.size() / 2] ^= 0x55;
  // The checksum fits, as if the writer had been broken.
  std::ofstream(files[0], std::ios::binary)
      << EncodeRecord({.kind = RecordKind::kUsage, .payload = payload});
  Start second(*this);
  second.Run(1, 10);
  EXPECT_THAT(second.observer.of("mean").compiles, IsEmpty());
}

TEST_F(RecipeStoreEngineTest, ReadOnlyFolderIsServedFrom) {
  Start(*this).Run(1, 10);
  const auto size = std::filesystem::file_size(Files("recipe")[0]);
  std::filesystem::permissions(folder_.path() / "store", std::filesystem::perms(0555));
  {
    Start second(*this);
    second.Run(1, 10);
    second.Run(1, 30);
    EXPECT_THAT(second.observer.of("mean").compiles, ElementsAre("b1_s32 first_request"));
  }
  std::filesystem::permissions(folder_.path() / "store", std::filesystem::perms::owner_all);
  EXPECT_THAT(Files("recipe"), SizeIs(1));
  EXPECT_EQ(std::filesystem::file_size(Files("recipe")[0]), size);
}

}  // namespace
}  // namespace reprise
