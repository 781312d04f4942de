// Which sizes `reprise bench --profile --bucket` means, and that a profile can be made of them.
#include "tools/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() {
    ModelBuilder builder;
    builder.Input("x", {"batch", "sequence"}).Output("y");
    builder.Node("Softmax", {"x"}, {"s"}, "mixes_the_sequence");
    builder.Node("Erf", {"s"}, {"y"}, "erf");
    path_ = folder_.Write("model.onnx", builder.Bytes());
  }

  std::shared_ptr<Model> Load() {
    const auto model = fixture_.engine.Load({.id = {"m", 1}, .path = path_});
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }

  const TempFolder folder_;
  std::string path_;
  EngineFixture fixture_;
};

TEST_F(ProfileTest, SizesAreNamedByAxis) {
  const auto sizes = SizesOf(*Load(), "batch=3,sequence=77");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->sizes, (AxisSizes{{"batch", 3}, {"sequence", 77}}));
}

TEST_F(ProfileTest, WhatIsNoBucketIsRefusedWithWhatThereIs) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}).Output("y");
  builder.Initializer<int64_t>("most", onnx::TensorProto::INT64, {1}, {3});
  auto& node = builder.Node("TopK", {"x", "most"}, {"y", "places"}, "mixes_the_sequence");
  SetAttribute(node, "largest", int64_t{0});
  std::ofstream(path_, std::ios::binary) << builder.Bytes();
  for (const char* text : {"b1_s128", "batch=3", "batch=3,sequence=0", "batch=3,sequence=4,z=5"}) {
    const auto sizes = SizesOf(*Load(), text);
    EXPECT_EQ(sizes.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(sizes.status().message()),
        AllOf(HasSubstr(text), HasSubstr("no buckets"), HasSubstr("batch=SIZE,sequence=SIZE")));
  }
}

TEST_F(ProfileTest, BucketsAreNamedByTheirLabel) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "4"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"});
  std::ofstream(path_, std::ios::binary) << builder.Bytes();
  const auto model = Load();
  EXPECT_EQ(SizesOf(*model, "b8")->sizes, (AxisSizes{{"batch", 8}}));
  EXPECT_EQ(SizesOf(*model, "")->sizes, (AxisSizes{{"batch", 1}}));
  EXPECT_THAT(std::string(SizesOf(*model, "b3").status().message()),
              AllOf(HasSubstr("'b3'"), HasSubstr("b4, b8"), HasSubstr("batch=SIZE")));
}

TEST_F(ProfileTest, EveryLaunchIsListedWithItsShareOfTheRoofline) {
  testing::internal::CaptureStdout();
  const absl::Status status =
      RunProfile({.path = path_, .bucket = "batch=2,sequence=30", .repeats = 3});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(text, AllOf(HasSubstr("batch 2, sequence 30"), HasSubstr("measured: "),
                          HasSubstr("softmax_"), HasSubstr("unary_"), HasSubstr("whole replay")));
}

// As they are replayed for requests.
TEST_F(ProfileTest, RowsOfLargePicturesHaveLaunchesOfTheirOwn) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "8", "256", "256"}).Output("y");
  builder.Node("Erf", {"x"}, {"e"});
  builder.Node("Tanh", {"e"}, {"y"});
  std::ofstream(path_, std::ios::binary) << builder.Bytes();
  testing::internal::CaptureStdout();
  const absl::Status status = RunProfile({.path = path_, .bucket = "b4", .repeats = 1});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(text, AllOf(HasSubstr("row 1 of 4"), HasSubstr("row 4 of 4")));
}

}  // namespace
}  // namespace reprise::cli
