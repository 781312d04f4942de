#include "runtime/recipe/kernel_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

const KernelChoice kOne = {"gemm: [8, 384] x [384, 1536]", "gemm/whole", 90, 100};
const KernelChoice kTwo = {"gemm: [16, 384] x [384, 1536]", "gemm", 50, 50};

TEST(KernelChoicesTest, LaterAnswerReplacesAnEarlierOne) {
  KernelChoices choices;
  EXPECT_EQ(choices.Find(kOne.question), std::nullopt);
  choices.Set(kOne);
  choices.Set(kTwo);
  EXPECT_EQ(choices.Find(kOne.question), "gemm/whole");
  KernelChoice changed = kOne;
  changed.kernel = "gemm/other";
  choices.Set(changed);
  EXPECT_THAT(choices.All(), ElementsAre(changed, kTwo));
}

TEST(KernelChoicesTest, OldestAnswerIsForgottenBeyondTheLimit) {
  KernelChoices choices;
  for (size_t i = 0; i <= KernelChoices::kMost; ++i) choices.Set({absl::StrCat(i), "gemm", 1, 1});
  EXPECT_THAT(choices.All(), SizeIs(KernelChoices::kMost));
  EXPECT_EQ(choices.Find("0"), std::nullopt);
  EXPECT_EQ(choices.Find("1"), "gemm");
}

TEST(KernelChoicesTest, RecordKeepsWhatWasTimed) {
  const auto read = DecodeChoices(EncodeChoices("cpu x", {kOne, kTwo}), "cpu x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(kOne, kTwo));
}

TEST(KernelChoicesTest, RecordOfAnotherDeviceIsRefused) {
  const std::string bytes = EncodeChoices("cpu x", {kOne});
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeChoices(bytes, "cpu y").status()));
  EXPECT_FALSE(ChoicesNameOf("cpu x") == ChoicesNameOf("cpu y"));
}

TEST(KernelChoicesTest, BytesThatAreNoChoicesAreRefused) {
  EXPECT_TRUE(absl::IsDataLoss(DecodeChoices("\xff\xff\xff", "cpu x").status()));
  const std::string nameless = EncodeChoices("cpu x", {{"question", "", 1, 1}});
  EXPECT_TRUE(absl::IsDataLoss(DecodeChoices(nameless, "cpu x").status()));
}

}  // namespace
}  // namespace reprise
