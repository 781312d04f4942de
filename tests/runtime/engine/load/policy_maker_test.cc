// The buckets that a model begins with where nothing is configured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace reprise
