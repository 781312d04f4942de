// Declared lists of transforms: how they are read, and refusals by name.
#include "client/images/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::images {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TransformListTest, ReadsNamesNumbersListsAndDefaults) {
  const auto list = TransformList::Parse(
      "Resize(256, interpolation=bicubic),  # the shorter side\n"
      "CenterCrop(size=[224, 160]); RandomHorizontalFlip\n"
      "ColorJitter(0.4, hue=(-0.1, 0.2)), ToTensor(), Normalize(0.5, [0.1, 0.2, 0.3])");
  ASSERT_TRUE(list.ok()) << list.status();
  const auto& all = list->transforms();
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].filter, Filter::kBicubic);
  EXPECT_THAT(all[0].size, ElementsAre(256));
  EXPECT_THAT(all[1].size, ElementsAre(224, 160));
  EXPECT_EQ(all[2].probability, 0.5);
  EXPECT_THAT(all[3].brightness, ElementsAre(0.6, 1.4));
  EXPECT_THAT(all[3].contrast, ElementsAre(1, 1));
  EXPECT_THAT(all[3].hue, ElementsAre(-0.1, 0.2));
  EXPECT_THAT(all[5].std, ElementsAre(0.1, 0.2, 0.3));
  EXPECT_TRUE(list->makes_tensor());
  const auto size = list->ResultSize();
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(*size, std::pair(224, 160));
}

TEST(TransformListTest, AFlipAfterToTensorIsDoneBeforeIt) {
  const auto list = TransformList::Parse(
      "RandomIoUCrop, Resize([8, 8]), ToTensor, RandomHorizontalFlip(0.25), Normalize(0, 1)");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->transforms().size(), 5u);
  EXPECT_EQ(list->transforms()[2].kind, TransformKind::kRandomHorizontalFlip);
  EXPECT_EQ(list->transforms()[2].probability, 0.25);
  EXPECT_EQ(list->transforms()[3].kind, TransformKind::kToTensor);
}

struct Refusal {
  const char* text;
  const char* words;
};

class TransformRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(TransformRefusalTest, NamesTheCulprit) {
  const auto list = TransformList::Parse(GetParam().text);
  EXPECT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(list.status().message()), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    All, TransformRefusalTest,
    ::testing::Values(
        Refusal{"Resise(3)", "transform Resise(3): there is none of this name; known are: Resize"},
        Refusal{"Resize", "the parameter size is missing"},
        Refusal{"Resize(0)", "size is 0, expected a number of pixels"},
        Refusal{"Resize(2.5)", "size is 2.5"}, Refusal{"Resize([1, 2, 3])", "size is [1, 2, 3]"},
        Refusal{"Resize(nan)", "size is nan"}, Refusal{"Resize(1e9)", "size is 1e9"},
        Refusal{"Resize(8, interpolation=lanczos)", "nearest, bilinear or bicubic"},
        Refusal{"Resize(8, sise=3)", "is not a parameter; there are: size, interpolation"},
        Refusal{"Resize(8, size=8)", "is given twice"}, Refusal{"Resize(8", "brackets"},
        Refusal{"Resize(8))", "brackets"}, Refusal{"Resize(8) x", "follow its brackets"},
        Refusal{"RandomResizedCrop(8, scale=[1, 0.5])", "scale is [1, 0.5]"},
        Refusal{"RandomHorizontalFlip(1.5)", "p is 1.5"},
        Refusal{"ColorJitter(hue=0.6)", "hue is 0.6"},
        Refusal{"Normalize(0, 1)", "takes the result of ToTensor"},
        Refusal{"ToTensor, Resize(8)", "must be in front of ToTensor"},
        Refusal{"ToTensor, Normalize(0, 1), Normalize(0, 1)", "may occur once"},
        Refusal{"ToTensor, Normalize(0, 0)", "std is 0"}));

TEST(TransformListTest, ListsThatLeaveSizesOpenAreRefusedByTheTransform) {
  for (const char* text :
       {"Resize(256), ToTensor", "ToTensor", "", "CenterCrop(8), RandomIoUCrop, ToTensor"}) {
    const auto list = TransformList::Parse(text);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(list->ResultSize().status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace reprise::images
