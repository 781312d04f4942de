#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/pictures/detections.h"
#include "server/pictures/file_metadata.h"
#include "server/pictures/picture_files.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A picture of 200 x 100 in a tensor of 100 x 100: half the size, 25 rows of border above.
constexpr PicturePlace kPlace = {.width = 200,
                                 .height = 100,
                                 .tensor_width = 100,
                                 .tensor_height = 100,
                                 .scale_x = 0.5,
                                 .scale_y = 0.5,
                                 .offset_x = 0,
                                 .offset_y = 25};

TEST(DetectionsTest, YoloV5BoxesAreOfThePictureAndScoresProducts) {
  const std::vector<float> rows = {50, 50, 20, 10, 0.5, 0.1, 0.9,   // class 1, 0.45
                                   50, 50, 20, 10, 0.5, 0.1, 0.2,   // 0.1
                                   0,  25, 40, 40, 1.0, 0.6, 0.5};  // lies at a corner
  const auto found = Detect(DetectorHead::kYoloV5, {{{.values = rows, .shape = {3, 7}}}}, 2, kPlace,
                            {.conf = 0.25, .iou = 0.5});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_EQ((*found)[0].label, 0);
  EXPECT_FLOAT_EQ((*found)[0].score, 0.6f);
  EXPECT_EQ((*found)[0].left, 0);  // cut at the picture's edges
  EXPECT_EQ((*found)[0].top, 0);
  EXPECT_EQ((*found)[0].right, 40);
  EXPECT_EQ((*found)[0].bottom, 40);
  EXPECT_EQ((*found)[1].label, 1);
  EXPECT_FLOAT_EQ((*found)[1].score, 0.45f);
  EXPECT_EQ((*found)[1].left, 80);
  EXPECT_EQ((*found)[1].top, 40);
  EXPECT_EQ((*found)[1].right, 120);
  EXPECT_EQ((*found)[1].bottom, 60);
}

TEST(DetectionsTest, YoloV8BoxesOfAClassThatOverlapAreOne) {
  // Three boxes: two of class 0 that overlap by 0.6, one of class 1 in the same place.
  const std::vector<float> columns = {50,  55,   50,    // x
                                      50,  50,   50,    // y
                                      20,  20,   20,    // width
                                      20,  20,   20,    // height
                                      0.9, 0.95, 0.1,   // class 0
                                      0.1, 0.1,  0.8};  // class 1
  const std::vector<HeadOutput> outputs = {{.values = columns, .shape = {6, 3}}};
  const auto detect = [&](double iou, int64_t most) {
    return *Detect(DetectorHead::kYoloV8, outputs, 0, kPlace,
                   {.conf = 0.25, .iou = iou, .most = most});
  };
  EXPECT_THAT(detect(0.7, 300), SizeIs(3));
  ASSERT_THAT(detect(0.5, 300), SizeIs(2));
  EXPECT_FLOAT_EQ(detect(0.5, 300)[0].score, 0.95f);
  EXPECT_EQ(detect(0.5, 300)[1].label, 1);
  EXPECT_THAT(detect(1, 1), SizeIs(1));
}

TEST(DetectionsTest, DetrLeavesOutTheClassOfNoObject) {
  const std::vector<float> logits = {5, 0, 0,   // class 0
                                     0, 0, 5,   // none
                                     0, 5, 0};  // class 1
  const std::vector<float> boxes = {0.5, 0.5, 0.2, 0.2, 0.5, 0.5, 0.2, 0.2, 0.1, 0.5, 0.2, 0.2};
  const auto found =
      Detect(DetectorHead::kDetr,
             {{{.values = logits, .shape = {3, 3}}, {.values = boxes, .shape = {3, 4}}}}, 0, kPlace,
             DefaultOptions(DetectorHead::kDetr));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_NEAR((*found)[0].score, std::exp(5) / (std::exp(5) + 2), 1e-5);
  EXPECT_NEAR((*found)[0].left, 80, 1e-4);
  EXPECT_EQ((*found)[1].label, 1);
}

TEST(DetectionsTest, NumbersThatAreNoneMakeNoObjects) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> columns = {nan, 50, nan, 50, 20, 20, 20, 20, 0.9, nan};
  const auto found = Detect(DetectorHead::kYoloV8, {{{.values = columns, .shape = {5, 2}}}}, 1,
                            kPlace, {.conf = 0.25, .iou = 0.5});
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, IsEmpty());
}

TEST(DetectionsTest, OutputsOfOtherShapesAreRefusedWithBoth) {
  const std::vector<float> columns(20);
  const auto found =
      Detect(DetectorHead::kYoloV8, {{{.values = columns, .shape = {10, 2}}}}, 80, kPlace, {});
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("[10, 2]"));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("80 labels"));
}

TEST(PictureFilesTest, ProcessorsOfTransformersBecomeTransforms) {
  EXPECT_EQ(*TransformsOf(R"({"image_processor_type": "ViTImageProcessor", "size": {"height": 224,
      "width": 200}, "resample": 2, "do_normalize": true, "image_mean": [0.5, 0.5, 0.5],
      "image_std": [0.25, 0.5, 1]})"),
            "Resize([224, 200], bilinear), ToTensor, Normalize([0.5, 0.5, 0.5], [0.25, 0.5, 1])");
  EXPECT_EQ(*TransformsOf(R"({"feature_extractor_type": "CLIPFeatureExtractor", "size": 224,
      "do_center_crop": true, "crop_size": 224, "do_normalize": false})"),
            "Resize(224, bicubic), CenterCrop([224, 224]), ToTensor");
  EXPECT_EQ(*TransformsOf(R"({"image_processor_type": "DetrImageProcessor", "do_normalize": false,
      "size": {"shortest_edge": 800, "longest_edge": 1333}})"),
            "Resize(800, bilinear, max_size=1333), ToTensor");
  EXPECT_EQ(*TransformsOf(R"({"image_processor_type": "ConvNextImageProcessor", "crop_pct": 0.875,
      "size": {"shortest_edge": 224}, "do_normalize": false})"),
            "Resize(256, bicubic), CenterCrop(224), ToTensor");
}

TEST(PictureFilesTest, WhatIsNotDoneIsRefusedByNameAndValue) {
  const auto error = [](const char* json) {
    return std::string(TransformsOf(json).status().message());
  };
  EXPECT_THAT(error(R"({"resample": 1, "size": 224})"), HasSubstr("\"resample\" is 1"));
  EXPECT_THAT(error(R"({"do_rescale": false})"), HasSubstr("do_rescale"));
  EXPECT_THAT(error(R"({"rescale_factor": 1})"), HasSubstr("\"rescale_factor\" is 1"));
  EXPECT_THAT(error(R"({"do_flip_channel_order": true})"), HasSubstr("do_flip_channel_order"));
  EXPECT_THAT(error(R"({"size": {"shortest": 3}})"), HasSubstr("\"size\""));
  EXPECT_THAT(error("[]"), HasSubstr("not a JSON object"));
}

TEST(FileMetadataTest, NamesOfUltralyticsAreLabels) {
  EXPECT_THAT(LabelsOfNames("{0: 'person', 2: \"driver's seat\", 1: 'it\\'s'}"),
              ElementsAre("person", "it's", "driver's seat"));
  for (const char* text : {"", "{", "{0: person}", "{0: 'a'", "['a']", "{99999999: 'a'}"}) {
    EXPECT_THAT(LabelsOfNames(text), IsEmpty()) << text;
  }
}

TEST(FileMetadataTest, SidesOfUltralyticsAreTwoNumbers) {
  EXPECT_THAT(SidesOfSize("[640, 480]"), ElementsAre(640, 480));
  for (const char* text : {"", "640", "[640]", "[0, 1]", "[1, 2, 3]", "[a, 1]", "[1, 99999999]"}) {
    EXPECT_THAT(SidesOfSize(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace reprise
