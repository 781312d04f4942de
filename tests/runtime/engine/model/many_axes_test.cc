// Models of several symbolic sizes: their buckets multiply, too many to list them one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class ManyAxesTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto model = fixture_.engine.Load(
        {.id = {"many", 1}, .path = folder_.Write("many.onnx", ManyLengths(GetParam()).Bytes())});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

TEST_P(ManyAxesTest, RequestsGetTheirBuckets) {
  const int axes = GetParam();
  EXPECT_TRUE(model_->BucketLabels().empty());
  std::vector<std::vector<float>> x;
  Request request;
  std::string bucket;
  for (int i = 0; i < axes; ++i) {
    const int64_t length = 1 + 7 * i;
    std::vector<float>& values = x.emplace_back(length * 4);
    for (size_t k = 0; k < values.size(); ++k) values[k] = (k % 2 == 0 ? 1.0f : -1.0f) * (i + 1);
    request.inputs.push_back({{length, 4}, values.data()});
  }
  for (const char* capture : {"captured", "replayed"}) {
    const Response response = fixture_.engine.RunOne(*model_, request, *fixture_.stream);
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_THAT(response.info.bucket, HasSubstr("len_0_16_len_1"));
    EXPECT_TRUE(model_->FindBucket(response.info.bucket).has_value()) << response.info.bucket;
    EXPECT_EQ(CaptureOutcomeName(response.info.capture), capture);
    for (int i = 0; i < axes; ++i) {
      ASSERT_EQ(response.outputs[i].shape, Shape({1 + 7 * i, 4}));
      const auto* y = reinterpret_cast<const float*>(response.outputs[i].bytes.data());
      for (size_t k = 0; k < x[i].size(); ++k) ASSERT_EQ(y[k], std::max(x[i][k], 0.0f));
    }
  }
}

// Question and passage: their lengths add up, so that rows of both share a replay.
TEST(MeasureTest, InputsOfDifferentLengthsAddUp) {
  const TempFolder folder;
  EngineFixture fixture;
  ModelBuilder b;
  b.Input("q", {"batch", "q_len", "4"}).Input("p", {"batch", "p_len", "4"}).Output("y").Output("z");
  b.Node("Relu", {"q"}, {"y"});
  b.Node("Relu", {"p"}, {"z"});
  const auto model =
      fixture.engine.Load({.id = {"ranker", 1}, .path = folder.Write("ranker.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  // 8 rows of 16 + 256 are within 4096 elements; so are none of more than one of 16 x 256.
  EXPECT_EQ((*model)->buckets()->LargestBatch({{"q_len", 16}, {"p_len", 256}}), 8);
  const std::vector<float> x(8 * 200 * 4, -1);
  const auto shape =
      (*model)->Measure({.inputs = {{{8, 10, 4}, x.data()}, {{8, 200, 4}, x.data()}}});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->tokens, 8 * (10 + 200));
  EXPECT_EQ((*model)->MaxRows(*shape), 8);
}

INSTANTIATE_TEST_SUITE_P(Axes, ManyAxesTest, testing::Values(5, 8, 13, 30));

}  // namespace
}  // namespace reprise
