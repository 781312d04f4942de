// A lone request's floats are written where its answer has them, where that is the beginning of
// what the recipe computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::Each;
using ::testing::Not;

constexpr int64_t kWidth = 24;
constexpr uint8_t kUntouched = 0x5a;

// x [batch, sequence, 24] times weights, and its Relu.
class OutputsInPlaceTest : public testing::Test {
 protected:
  void Load(PackingMode packing = PackingMode::kOff) {
    ModelBuilder b;
    b.Input("x", {"batch", "sequence", std::to_string(kWidth)}).Output("y").Output("z");
    std::vector<float> weights(kWidth * kWidth);
    for (float& weight : weights) weight = Draw();
    b.Floats("w", {kWidth, kWidth}, weights);
    b.Node("MatMul", {"x", "w"}, {"y"});
    b.Node("Relu", {"y"}, {"z"});
    const auto model =
        fixture_.engine.Load({.id = {"m", 1},
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

  // What the place of `y` on the stream holds after the request, where it held kUntouched before.
  // The answer goes to `response`.
  std::vector<uint8_t> CopiedFor(const Request& request, Response* response) {
    *response = fixture_.engine.RunOne(*model_, request, *fixture_.stream);  // captures
    const std::string key = response->info.recipe;
    for (const CachedRecipe& cached : fixture_.engine.ListRecipes()) {
      if (cached.recipe->key.hex() != key) continue;
      const absl::Span<std::byte> block = fixture_.stream->Block(*cached.recipe);
      std::memset(block.data(), kUntouched, block.size());
      *response = fixture_.engine.RunOne(*model_, request, *fixture_.stream);
      EXPECT_TRUE(response->status.ok()) << response->status;
      const auto* outputs = reinterpret_cast<const uint8_t*>(block.data()) +
                            cached.recipe->input_bytes + cached.recipe->outputs[0].offset;
      return {outputs, outputs + cached.recipe->outputs[0].bytes};
    }
    ADD_FAILURE() << response->status << ": no recipe " << key;
    return {};
  }

  // The rows of `y`, as one request a row gives them.
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
  EXPECT_THAT(CopiedFor(Sent(2, 8), &response), Each(kUntouched));
  ExpectRowsOfTheirOwn(response, 2, 8);
}

TEST_F(OutputsInPlaceTest, NeitherIsOneOfTheFirstOfItsRows) {
  Load();
  Response response;
  EXPECT_THAT(CopiedFor(Sent(5, 8), &response), Each(kUntouched));
  ExpectRowsOfTheirOwn(response, 5, 8);
}

TEST_F(OutputsInPlaceTest, OneThatPaddingLiesInIsCopied) {
  Load();
  Response response;
  EXPECT_THAT(CopiedFor(Sent(2, 7), &response), Not(Each(kUntouched)));
  ExpectRowsOfTheirOwn(response, 2, 7);
}

// It would be kept in a place for eight rows.
TEST_F(OutputsInPlaceTest, OneThatIsMuchSmallerIsCopied) {
  Load();
  Response response;
  EXPECT_THAT(CopiedFor(Sent(3, 8), &response), Not(Each(kUntouched)));
  ExpectRowsOfTheirOwn(response, 3, 8);
}

TEST_F(OutputsInPlaceTest, OnePackedIsNotCopied) {
  Load(PackingMode::kAuto);
  ASSERT_NE(model_->packing(), nullptr) << model_->packing_refusal();
  Response response;
  EXPECT_THAT(CopiedFor(Sent(2, 7), &response), Each(kUntouched));
  EXPECT_EQ(response.info.bucket, "t16");
  ExpectRowsOfTheirOwn(response, 2, 7);
}

TEST_F(OutputsInPlaceTest, WhatNobodyWantsHasNoPlace) {
  Load();
  Request request = Sent(2, 8);
  request.wanted_outputs = {false, true};
  Response response;
  EXPECT_THAT(CopiedFor(request, &response), Not(Each(kUntouched)));
  EXPECT_TRUE(response.outputs[0].bytes.empty());
  EXPECT_EQ(response.outputs[1].shape, (Shape{2, 8, kWidth}));
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
  const std::vector<Response> apart =
      fixture_.engine.Run(plan, {&one, &two}, *fixture_.stream);
  for (size_t output : {0, 1}) {
    EXPECT_EQ(apart[0].outputs[output].bytes + apart[1].outputs[output].bytes,
              together.outputs[output].bytes);
  }
}

}  // namespace
}  // namespace reprise
