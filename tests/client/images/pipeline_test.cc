// The fast path and the plain one: the same bits, the same boxes, and a cause by name.
#include "client/images/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace reprise::images {
namespace {

using ::testing::HasSubstr;

// Pixels without a pattern that could hide a mistake.
Image Noise(int width, int height) {
  Image image(width, height);
  RandomStream random(7, static_cast<uint64_t>(width), static_cast<uint64_t>(height));
  for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random.Next());
  return image;
}

Pipeline Make(const std::string& text, ChannelOrder order = ChannelOrder::kAuto) {
  auto list = TransformList::Parse(text);
  EXPECT_TRUE(list.ok()) << list.status();
  auto pipeline = Pipeline::Make(*std::move(list), order);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

struct Element {
  std::string cause;
  std::vector<std::byte> bytes;
  std::vector<Box> boxes;
};

Element Apply(const Pipeline& pipeline, const Image& image, const std::string& cause,
              uint64_t seed) {
  Element element = {.bytes = std::vector<std::byte>(pipeline.writer().bytes()),
                     .boxes = {{1, 10, 5, 40, 30}, {2, 0, 0, 12, 12}, {3, 30, 20, 47, 31}}};
  RandomStream random(seed, 1, 0);
  auto applied = pipeline.Apply({.image = image, .plain_cause = cause}, random, element.boxes,
                                element.bytes.data());
  EXPECT_TRUE(applied.ok()) << applied.status();
  element.cause = applied.value_or("");
  return element;
}

class BothPathsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BothPathsTest, GiveTheSameBitsAndBoxes) {
  for (const ChannelOrder order : {ChannelOrder::kFirst, ChannelOrder::kLast}) {
    const Pipeline pipeline = Make(GetParam(), order);
    EXPECT_EQ(pipeline.plain_cause(), "");
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Image image = Noise(48 + static_cast<int>(seed) * 3, 32 + static_cast<int>(seed % 5));
      const Element fast = Apply(pipeline, image, "", seed);
      const Element plain = Apply(pipeline, image, "asked for", seed);
      EXPECT_EQ(fast.cause, "");
      EXPECT_EQ(plain.cause, "asked for");
      EXPECT_EQ(fast.bytes, plain.bytes) << "seed " << seed;
      ASSERT_EQ(fast.boxes.size(), plain.boxes.size());
      for (size_t i = 0; i < fast.boxes.size(); ++i) {
        EXPECT_EQ(fast.boxes[i].label, plain.boxes[i].label);
        EXPECT_EQ(fast.boxes[i].left, plain.boxes[i].left);
        EXPECT_EQ(fast.boxes[i].bottom, plain.boxes[i].bottom);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BothPathsTest,
    ::testing::Values("Resize(28), CenterCrop([21, 17]), ToTensor, Normalize([0.1, 0.2, 0.3], 0.5)",
                      "Resize([20, 90])", "Resize([32, 20]), RandomHorizontalFlip, ToTensor",
                      "CenterCrop(30), ToTensor", "CenterCrop([32, 48])",
                      "RandomResizedCrop(24), RandomHorizontalFlip(0.5), ToTensor",
                      "RandomResizedCrop([24, 40], scale=[0.01, 0.1]), CenterCrop(16)",
                      "RandomIoUCrop, Resize([30, 30]), RandomHorizontalFlip(1), "
                      "ColorJitter(0.4, 0.4, 0.4, 0.1), ToTensor"));

TEST(PlainPathTest, NamesTheParameterThatIsTheCause) {
  const std::pair<const char*, const char*> cases[] = {
      {"Resize([8, 8], interpolation=nearest)",
       "Resize([8, 8], interpolation=nearest): interpolation"},
      {"RandomHorizontalFlip, CenterCrop(8), ToTensor",
       "CenterCrop(8) behind RandomHorizontalFlip"},
      {"CenterCrop(8), CenterCrop(4)", "CenterCrop(4) behind CenterCrop(8)"}};
  for (const auto& [text, words] : cases) {
    const Pipeline pipeline = Make(text);
    EXPECT_THAT(Apply(pipeline, Noise(48, 32), "", 1).cause, HasSubstr(words));
  }
  const Pipeline crop = Make("CenterCrop([40, 20]), ToTensor");
  EXPECT_EQ(Apply(crop, Noise(48, 40), "", 1).cause, "");
  EXPECT_EQ(Apply(crop, Noise(48, 32), "", 1).cause,
            "CenterCrop([40, 20]) of an image of 32 x 48: the fast path pads nothing");
}

TEST(PlainPathTest, ResizesThatWouldBeGiantAreRefusedWithTheNumbers) {
  const Pipeline pipeline = Make("Resize(8000), CenterCrop(8), ToTensor");
  std::vector<std::byte> bytes(pipeline.writer().bytes());
  std::vector<Box> boxes;
  RandomStream random(1, 1, 1);
  const auto applied = pipeline.Apply({.image = Noise(2, 40000)}, random, boxes, bytes.data());
  EXPECT_EQ(applied.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(applied.status().message()), HasSubstr("8000 x 160000000"));
}

TEST(CropsTest, IouCropsHoldTheCenterOfABox) {
  const auto list = TransformList::Parse("RandomIoUCrop");
  const std::vector<Box> boxes = {{1, 10, 10, 50, 50}};
  RandomStream random(3, 1, 0);
  int changed = 0;
  for (int i = 0; i < 200; ++i) {
    const Rect rect = IouCropOf(list->transforms()[0], {100, 80}, boxes, random);
    EXPECT_GE(rect.x, 0);
    EXPECT_LE(rect.x + rect.width, 100);
    EXPECT_GE(rect.y, 0);
    EXPECT_LE(rect.y + rect.height, 80);
    EXPECT_TRUE(rect.x < 30 && 30 < rect.x + rect.width && rect.y < 30 &&
                30 < rect.y + rect.height);
    changed += rect.width < 100 ? 1 : 0;
  }
  EXPECT_GT(changed, 100);
}

TEST(CropsTest, RandomCropsKeepTheirScaleAndRatio) {
  const auto list = TransformList::Parse("RandomResizedCrop(8, scale=[0.2, 0.4], ratio=[0.5, 2])");
  RandomStream random(3, 1, 0);
  for (int i = 0; i < 500; ++i) {
    const Rect rect = RandomCropOf(list->transforms()[0], {400, 300}, random);
    const double share = static_cast<double>(rect.width) * rect.height / (400.0 * 300.0);
    const double ratio = static_cast<double>(rect.width) / rect.height;
    EXPECT_TRUE(share > 0.19 && share < 0.41) << share;
    EXPECT_TRUE(ratio > 0.48 && ratio < 2.05) << ratio;
    EXPECT_TRUE(rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= 400 &&
                rect.y + rect.height <= 300);
  }
}

}  // namespace
}  // namespace reprise::images
