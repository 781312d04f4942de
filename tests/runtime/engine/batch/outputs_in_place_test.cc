// A lone request's floats are written where its answer has them, where that is the beginning of the
// recipe's result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// x [batch, sequence, 24] times weights, its Relu, and where that is the largest.
class OutputsInPlaceTest : public testing::Test {
 protected:
  static constexpr int64_t kWidth = 24;

  void Load(PackingMode packing = PackingMode::kOff) {
    fixture_.MakeStream(1, /*poison=*/false);
    ModelBuilder b;
    b.Input("x", {"batch", "sequence", std::to_string(kWidth)}).Output("y").Output("z");
    std::vector<float> weights(kWidth * kWidth);
    for (float& weight : weights) weight = Draw();
    b.Floats("w", {kWidth, kWidth}, weights);
    b.Node("MatMul", {"x", "w"}, {"y"});
    b.Node("Relu", {"y"}, {"z"});
    b.Output("place");
    SetAttribute(b.Node("ArgMax", {"z"}, {"place"}), "axis", int64_t{-1});
    const auto model = fixture_.engine.Load({.id = {"m", 1},
                                             .path = folder_.Write("m.onnx", b.Bytes()),
                                             .buckets = {{"batch", {2, 8}}, {"sequence", {4, 8}}},
                                             .packing = packing});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
    x_.resize(8 * 8 * kWidth);
    for (float& x : x_) x = Draw();
  }

  float Draw() { return std::uniform_real_distribution<float>(-1, 1)(random_); }

  Request Sent(int64_t rows, int64_t length) const {
    return {.inputs = {{{rows, length, kWidth}, x_.data()}}};
  }

  // Returns whether the place of each output on the stream was written to for the request. The
  // answer goes to `response`.
  std::vector<bool> IsCopiedFor(const Request& request, Response* response) {
    *response = fixture_.engine.RunOne(*model_, request, *fixture_.stream);  // captures
    const std::string key = response->info.recipe;
    for (const CachedRecipe& cached : fixture_.engine.ListRecipes()) {
      if (cached.recipe->key.hex() != key) continue;
      const absl::Span<std::byte> block = fixture_.stream->Block(*cached.recipe);
      std::memset(block.data(), 0x5a, block.size());
      *response = fixture_.engine.RunOne(*model_, request, *fixture_.stream);
      EXPECT_TRUE(response->status.ok()) << response->status;
      std::vector<bool> is_copied;
      for (const TensorSlot& slot : cached.recipe->outputs) {
        const absl::Span<std::byte> place =
            block.subspan(cached.recipe->input_bytes + slot.offset, slot.bytes);
        is_copied.push_back(
            absl::c_any_of(place, [](std::byte byte) { return byte != std::byte{0x5a}; }));
      }
      return is_copied;
    }
    ADD_FAILURE() << response->status << ": no recipe " << key;
    return {};
  }

  // Checks every row, as one request a row gives them.
  void ExpectRowsOfTheirOwn(const Response& response, int64_t rows, int64_t length) {
    const size_t row_bytes = static_cast<size_t>(length * kWidth) * sizeof(float);
    for (size_t output : {0, 1}) {
      ASSERT_EQ(response.outputs[output].shape, (Shape{rows, length, kWidth}));
      ASSERT_EQ(response.outputs[output].bytes.size(), static_cast<size_t>(rows) * row_bytes);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const Response alone = fixture_.engine.RunOne(
          *model_, {.inputs = {{{1, length, kWidth}, x_.data() + row * length * kWidth}}},
          *fixture_.stream);
      ASSERT_TRUE(alone.status.ok()) << alone.status;
      for (size_t output : {0, 1}) {
        const std::string& bytes = response.outputs[output].bytes;
        EXPECT_EQ(bytes.substr(static_cast<size_t>(row) * row_bytes, row_bytes),
                  alone.outputs[output].bytes);
      }
    }
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::mt19937 random_{1};
  std::shared_ptr<Model> model_;
  std::vector<float> x_;
};

TEST_F(OutputsInPlaceTest, AnAnswerOfTheRecipesSizesIsNotCopied) {
  Load();
  Response response;
  EXPECT_THAT(IsCopiedFor(Sent(2, 8), &response), ElementsAre(false, false, true));
  ExpectRowsOfTheirOwn(response, 2, 8);
}

TEST_F(OutputsInPlaceTest, NeitherIsOneOfTheFirstOfItsRows) {
  Load();
  Response response;
  EXPECT_THAT(IsCopiedFor(Sent(5, 8), &response), ElementsAre(false, false, true));
  ExpectRowsOfTheirOwn(response, 5, 8);
}

TEST_F(OutputsInPlaceTest, OneThatPaddingLiesInIsCopied) {
  Load();
  Response response;
  EXPECT_THAT(IsCopiedFor(Sent(2, 7), &response), Each(true));
  ExpectRowsOfTheirOwn(response, 2, 7);
}

// It would be kept in a place for eight rows.
TEST_F(OutputsInPlaceTest, OneThatIsMuchSmallerIsCopied) {
  Load();
  Response response;
  EXPECT_THAT(IsCopiedFor(Sent(3, 8), &response), Each(true));
  ExpectRowsOfTheirOwn(response, 3, 8);
}

TEST_F(OutputsInPlaceTest, OnePackedIsNotCopied) {
  Load(PackingMode::kAuto);
  ASSERT_NE(model_->packing(), nullptr) << model_->packing_refusal();
  Response response;
  EXPECT_THAT(IsCopiedFor(Sent(2, 7), &response), ElementsAre(false, false, true));
  EXPECT_EQ(response.info.bucket, "t16");
  ExpectRowsOfTheirOwn(response, 2, 7);
}

TEST_F(OutputsInPlaceTest, WhatNobodyWantsHasNoPlace) {
  Load();
  Request request = Sent(2, 8);
  request.wanted_outputs = {false, true, true};
  Response response;
  EXPECT_THAT(IsCopiedFor(request, &response), ElementsAre(true, false, true));
  EXPECT_TRUE(response.outputs[0].bytes.empty());
  EXPECT_EQ(response.outputs[1].shape, (Shape{2, 8, kWidth}));
}

TEST_F(OutputsInPlaceTest, WhatDataMakeAnErrorHasNoAnswer) {
  ModelBuilder b;
  b.Input("id", {"batch"}, onnx::TensorProto::INT64).Output("row");
  b.Floats("table", {4, kWidth}, std::vector<float>(4 * kWidth, 1));
  b.Node("Gather", {"table", "id"}, {"row"});
  const auto model =
      fixture_.engine.Load({.id = {"rows", 1}, .path = folder_.Write("g.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int64_t id : {3, 4, 2}) {
    const Response response =
        fixture_.engine.RunOne(**model, {.inputs = {{{1}, &id}}}, *fixture_.stream);
    EXPECT_EQ(response.status.ok(), id < 4) << response.status;
    EXPECT_EQ(response.outputs.size(), id < 4 ? 1 : 0);
  }
}

// A number that has no dims, halves, doubles, and a table without the batch.
TEST_F(OutputsInPlaceTest, OutputsOfAllKindsAreThoseOfTheReference) {
  ModelBuilder b;
  b.Input("x", {"batch", "6"});
  b.Floats("table", {3, 2}, {1, 2, 3, 4, 5, 6});
  SetAttribute(b.Node("ReduceSum", {"x"}, {"sum"}), "keepdims", int64_t{0});
  b.Node("Neg", {"table"}, {"negative"});
  SetAttribute(b.Node("Cast", {"x"}, {"half"}), "to", int64_t{onnx::TensorProto::FLOAT16});
  SetAttribute(b.Node("Cast", {"x"}, {"double"}), "to", int64_t{onnx::TensorProto::DOUBLE});
  SetAttribute(b.Node("Transpose", {"x"}, {"turned"}), "perm", std::vector<int64_t>{1, 0});
  for (const char* name : {"sum", "negative", "half", "double", "turned"}) b.Output(name);
  const auto model =
      fixture_.engine.Load({.id = {"kinds", 1}, .path = folder_.Write("k.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  const Response response =
      fixture_.engine.RunOne(**model, {.inputs = {{{2, 6}, x.data()}}}, *fixture_.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  const auto floats = [&](size_t output) {
    std::vector<float> values(response.outputs[output].bytes.size() / sizeof(float));
    std::memcpy(values.data(), response.outputs[output].bytes.data(),
                response.outputs[output].bytes.size());
    return values;
  };
  EXPECT_THAT(response.outputs[0].shape, testing::IsEmpty());
  EXPECT_THAT(floats(0), ElementsAre(231));
  EXPECT_THAT(floats(1), ElementsAre(-1, -2, -3, -4, -5, -6));
  const auto* halves = reinterpret_cast<const uint16_t*>(response.outputs[2].bytes.data());
  const auto* doubles = reinterpret_cast<const double*>(response.outputs[3].bytes.data());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(halves[i], FloatToHalf(x[i]));
    EXPECT_EQ(doubles[i], x[i]);
  }
  EXPECT_EQ(response.outputs[4].shape, (Shape{6, 2}));
  EXPECT_THAT(floats(4), ElementsAre(1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60));
}

// Outputs of the parts of a request that has more rows than a replay holds are joined, also where
// they have no elements.
TEST_F(OutputsInPlaceTest, PartsOfOneRequestAreJoined) {
  ModelBuilder b;
  b.Input("x", {"batch", "4"}).Output("none").Output("y");
  b.Initializer("begin", onnx::TensorProto::INT64, {1}, std::vector<int64_t>{0});
  b.Initializer("axis", onnx::TensorProto::INT64, {1}, std::vector<int64_t>{1});
  b.Node("Slice", {"x", "begin", "begin", "axis"}, {"none"});
  b.Node("Relu", {"x"}, {"y"});
  const auto model = fixture_.engine.Load({.id = {"parts", 1},
                                           .path = folder_.Write("p.onnx", b.Bytes()),
                                           .buckets = {{"batch", {2}}}});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int64_t rows : {2, 3, 7}) {
    const std::vector<float> x(static_cast<size_t>(rows) * 4, 1.5f);
    const Response response =
        fixture_.engine.RunOne(**model, {.inputs = {{{rows, 4}, x.data()}}}, *fixture_.stream);
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.outputs[0].shape, (Shape{rows, 0}));
    EXPECT_THAT(response.outputs[0].bytes, testing::IsEmpty());
    ASSERT_EQ(response.outputs[1].shape, (Shape{rows, 4}));
    ASSERT_EQ(response.outputs[1].bytes.size(), x.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(response.outputs[1].bytes.data(), x.data(), x.size() * sizeof(float)), 0);
  }
}

TEST_F(OutputsInPlaceTest, RequestsThatShareAReplayHaveTheirOwnRows) {
  Load();
  const Request one = Sent(1, 8);
  const Request two = {.inputs = {{{1, 8, kWidth}, x_.data() + 8 * kWidth}}};
  BatchPlan plan(*model_);
  for (const Request* request : {&one, &two}) {
    EXPECT_TRUE(plan.TryAdd(*model_->Measure(*request), nullptr, /*chosen=*/true));
  }
  const Response together = fixture_.engine.RunOne(*model_, Sent(2, 8), *fixture_.stream);
  ASSERT_TRUE(together.status.ok()) << together.status;
  const std::vector<Response> apart = fixture_.engine.Run(plan, {&one, &two}, *fixture_.stream);
  for (size_t output : {0, 1}) {
    EXPECT_EQ(apart[0].outputs[output].bytes + apart[1].outputs[output].bytes,
              together.outputs[output].bytes);
  }
}

}  // namespace
}  // namespace reprise
