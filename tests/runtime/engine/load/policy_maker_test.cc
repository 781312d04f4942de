// The buckets that a model begins with where nothing is configured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

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

// Recordings that four windows halve, and the mean of what is left.
class OpenedBucketsTest : public testing::Test {
 protected:
  std::shared_ptr<Model> Load(ModelOptions options = {}, bool short_table = false) {
    ModelBuilder b;
    b.Input("x", {"n", "1", "length"}).Output("y");
    std::string in = "x";
    if (short_table) {
      // Places up to 700, of which the first are taken.
      b.Floats("table", {1, 1, 700}, std::vector<float>(700, 0.5f));
      const auto place = [&](const char* name, int64_t value) {
        b.Initializer(name, onnx::TensorProto::INT64, {1}, std::vector<int64_t>{value});
      };
      place("zero", 0);
      place("two", 2);
      b.Node("Shape", {"x"}, {"shape"});
      b.Node("Gather", {"shape", "two"}, {"size"});
      b.Node("Slice", {"table", "zero", "size", "two"}, {"own"});
      b.Node("Add", {"x", "own"}, {"placed"});
      in = "placed";
    }
    for (int i = 0; i < 4; ++i) {
      const std::string out = absl::StrCat("halved", i);
      auto& pool = b.Node("MaxPool", {in}, {out});
      SetAttribute(pool, "kernel_shape", std::vector<int64_t>{4});
      SetAttribute(pool, "strides", std::vector<int64_t>{2});
      in = out;
    }
    SetAttribute(b.Node("ReduceMean", {in}, {"y"}), "axes", std::vector<int64_t>{2});
    options.id = {"m", 1};
    options.path = folder_.Write("model.onnx", b.Bytes());
    auto model = fixture_.engine.Load(std::move(options));
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }

  // Returns the answer to `rows` recordings of `length` samples.
  Response Ask(const Model& model, int64_t length, int64_t rows = 1) {
    std::vector<float> x(rows * length);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1000) - 500.0f;
    return fixture_.engine.RunOne(model, {.inputs = {{{rows, 1, length}, x.data()}}},
                                  *fixture_.stream);
  }

  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_F(OpenedBucketsTest, ManyLengthsOpenFewBucketsWithTheAnswersOfExactShapes) {
  const auto model = Load();
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(model->axes()[1].certificate.certified) << model->axes()[1].certificate.reason;
  const auto exact = Load({.no_padding = {"batch", "sequence"}});
  ASSERT_NE(exact, nullptr);
  std::set<std::string> buckets;
  for (int i = 0; i < 40; ++i) {
    const int64_t length = 900 + i * (16000 - 900) / 39;
    const Response padded = Ask(*model, length);
    ASSERT_TRUE(padded.status.ok()) << padded.status;
    EXPECT_NE(padded.info.bucket, "exact") << length;
    buckets.insert(padded.info.bucket);
    const Response alone = Ask(*exact, length);
    ASSERT_TRUE(alone.status.ok()) << alone.status;
    const auto value = [](const Response& response) {
      float number = 0;
      std::memcpy(&number, response.outputs[0].bytes.data(), sizeof(number));
      return number;
    };
    EXPECT_NEAR(value(padded), value(alone), 1e-3) << length;
  }
  EXPECT_LE(buckets.size(), 14u);
  EXPECT_EQ(Ask(*model, 990, 3).info.bucket, "b4_s992");
}

TEST_F(OpenedBucketsTest, TheyEndWhereTheModelDoes) {
  const auto model = Load({}, /*short_table=*/true);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Ask(*model, 600).info.bucket, "b1_s640");
  EXPECT_EQ(Ask(*model, 650).info.bucket, "b1_s700");
  EXPECT_FALSE(Ask(*model, 701).status.ok());
}

TEST_F(OpenedBucketsTest, GivenBucketsStayAsTheyAre) {
  EXPECT_EQ(Ask(*Load({.buckets = {{"sequence", {64, 512}}}}), 600).info.bucket, "exact");
  EXPECT_EQ(Ask(*Load({.overflow = BucketPolicy::Overflow::kReject}), 600).status.code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(OpenedBucketsTest, TheyEndAtTheMemoryOfAReplay) {
  const auto model = Load({.max_arena_bytes = 400'000});
  ASSERT_NE(model, nullptr);
  const int64_t largest = model->buckets()->Largest("sequence").value();
  EXPECT_GT(largest, 512);
  EXPECT_LT(largest, 100'000);
  const Response padded = Ask(*model, largest - 1);
  EXPECT_TRUE(padded.status.ok()) << padded.status;
  EXPECT_EQ(padded.info.bucket, absl::StrCat("b1_s", largest));
  const Response exact = Ask(*model, largest + 1);
  EXPECT_TRUE(exact.status.ok()) << exact.status;
  EXPECT_EQ(exact.info.bucket, "exact");
}

}  // namespace
}  // namespace reprise
