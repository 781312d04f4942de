// The buckets that a model begins with where nothing is configured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class RowBucketsTest : public testing::Test {
 protected:
  // y = Relu(x), rows of `dims` after the batch.
  std::shared_ptr<Model> Load(std::vector<std::string> dims, ModelOptions options = {}) {
    dims.insert(dims.begin(), "n");
    ModelBuilder b;
    b.Input("x", dims).Output("y");
    b.Node("Relu", {"x"}, {"y"});
    options.id = {"m", 1};
    options.path = folder_.Write("model.onnx", b.Bytes());
    auto model = fixture_.engine.Load(std::move(options));
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  static int64_t MostRows(const std::shared_ptr<Model>& model) {
    return model == nullptr ? 0 : model->buckets()->Largest("batch").value_or(0);
  }

  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_F(RowBucketsTest, SmallRowsGoToThousandsInOneReplay) {
  const auto model = Load({"10"});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(MostRows(model), 4096);
  EXPECT_EQ(model->max_batch(), 4096);
  EXPECT_EQ(model->buckets()->Fit("batch", 33), 64);
  const std::vector<float> x(4000 * 10, 1);
  const Response response =
      fixture_.engine.RunOne(*model, {.inputs = {{{4000, 10}, x.data()}}}, *fixture_.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(response.info.bucket, "b4096");
}

TEST_F(RowBucketsTest, WhatAReplayMayWriteLimitsThem) {
  EXPECT_EQ(MostRows(Load({"4096"})), 256);  // 32 KiB a row, of 8 MiB
  EXPECT_EQ(MostRows(Load({"3", "224", "224"})), 32);
}

TEST_F(RowBucketsTest, SoDoesWhatItMultiplies) {
  constexpr int64_t kWidth = 2048;  // 16 MiB, which are 256 rows of 4 GiB
  ModelBuilder b;
  b.Input("x", {"n", "2048"}).Output("y");
  b.Floats("w", {kWidth, kWidth}, std::vector<float>(kWidth * kWidth, 0.5f));
  b.Node("MatMul", {"x", "w"}, {"y"});
  auto model = fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("w.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(MostRows(*model), 256);
}

TEST_F(RowBucketsTest, AnotherAxisKeepsTheUsualOnes) { EXPECT_EQ(MostRows(Load({"length"})), 32); }

TEST_F(RowBucketsTest, WhatIsConfiguredLimitsThem) {
  EXPECT_EQ(MostRows(Load({"10"}, {.max_batch_tokens = 1000})), 512);
  EXPECT_EQ(MostRows(Load({"10"}, {.max_batch_size = 128})), 128);
  EXPECT_EQ(MostRows(Load({"10"}, {.max_batch_size = 8})), 32);
  const auto model = Load({"10"}, {.buckets = {{"batch", {1, 6}}}});
  ASSERT_NE(model, nullptr);
  EXPECT_THAT(model->buckets()->AllBuckets().value(),
              ElementsAre(AxisSizes{{"batch", 1}}, AxisSizes{{"batch", 6}}));
}

TEST_F(RowBucketsTest, RangeOfAnAxisCutsItsBucketsAndRefusesOtherSizes) {
  const SizeRange range = {.least = 8, .most = 104, .multiple = 8, .usual = 40};
  const auto model = Load({"length"}, {.ranges = {{"sequence", range}}});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->buckets()->Largest("sequence"), 104);
  EXPECT_EQ(model->buckets()->Fit("sequence", 33), 40);
  const std::vector<float> x(2 * 112, 1);
  for (const int64_t size : {96, 104, 7, 12, 112}) {
    const auto shape = model->Measure({.inputs = {{{2, size}, x.data()}}});
    if (size == 96 || size == 104) {
      EXPECT_TRUE(shape.ok()) << shape.status();
      continue;
    }
    EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(shape.status().message()),
                AllOf(HasSubstr(absl::StrCat("is ", size)), HasSubstr("'x'"),
                      HasSubstr("reprise.range.sequence allows 8 to 104 in multiples of 8")));
  }
}

TEST_F(RowBucketsTest, OptionsOfAnAxisGoByItsNameInTheFileAsWell) {
  const auto model =
      Load({"length"}, {.buckets = {{"length", {24, 48}}}, .ranges = {{"length", {.most = 48}}}});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->buckets()->Fit("sequence", 25), 48);
  EXPECT_TRUE(model->options().ranges.contains("sequence"));
  const auto off = Load({"length"}, {.no_padding = {"length"}});
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(off->buckets()->Largest("sequence"), std::nullopt);
}

TEST_F(RowBucketsTest, OptionsThatContradictAreRefused) {
  ModelBuilder b;
  b.Input("x", {"n", "length"}).Output("y");
  b.Node("Relu", {"x"}, {"y"});
  const std::string path = folder_.Write("model.onnx", b.Bytes());
  const auto why = [&](ModelOptions options) {
    options.id = {"m", 1};
    options.path = path;
    return std::string(fixture_.engine.Load(std::move(options)).status().message());
  };
  EXPECT_THAT(why({.ranges = {{"width", {.most = 9}}}}),
              AllOf(HasSubstr("range"), HasSubstr("'width'"), HasSubstr("batch, sequence")));
  EXPECT_THAT(why({.buckets = {{"sequence", {16}}, {"length", {32}}}}),
              AllOf(HasSubstr("twice"), HasSubstr("'sequence'")));
  EXPECT_THAT(why({.buckets = {{"sequence", {16, 600}}}, .ranges = {{"length", {.most = 512}}}}),
              AllOf(HasSubstr("bucket 600"), HasSubstr("at most 512")));
}

}  // namespace
}  // namespace reprise
