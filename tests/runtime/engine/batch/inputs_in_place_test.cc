// A lone request's floats are read where the client has them, if they fill the recipe's input.
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

// A step of a decoder in small: [n, 3, 8] of a cache and [n, 1, 8] after it, times weights.
class InputsInPlaceTest : public testing::Test {
 protected:
  static constexpr int64_t kPast = 3, kWidth = 8;

  InputsInPlaceTest() {
    fixture_.MakeStream(1, /*poison=*/false);
    ModelBuilder b;
    b.Input("past", {"n", "3", "8"}).Input("now", {"n", "1", "8"}).Output("cache").Output("y");
    SetAttribute(b.Node("Concat", {"past", "now"}, {"cache"}), "axis", int64_t{1});
    std::vector<float> weights(kWidth * kWidth);
    for (float& weight : weights) weight = Draw();
    b.Floats("w", {kWidth, kWidth}, weights);
    b.Node("MatMul", {"cache", "w"}, {"y"});
    const auto model =
        fixture_.engine.Load({.id = {"m", 1}, .path = folder_.Write("m.onnx", b.Bytes())});
    REPRISE_CHECK(model.ok());
    model_ = *model;
    for (float& x : past_) x = Draw();
    for (float& x : now_) x = Draw();
  }

  float Draw() { return std::uniform_real_distribution<float>(-1, 1)(random_); }

  // Runs the first `rows`, whose bytes begin `shift` bytes after an aligned address.
  Response Run(int64_t rows, size_t shift) {
    alignas(64) char past[sizeof(past_) + 64], now[sizeof(now_) + 64];
    std::memcpy(past + shift, past_, sizeof(past_));
    std::memcpy(now + shift, now_, sizeof(now_));
    return fixture_.engine.RunOne(
        *model_,
        {.inputs = {{{rows, kPast, kWidth}, past + shift}, {{rows, 1, kWidth}, now + shift}}},
        *fixture_.stream);
  }

  // Returns the bytes of the stream's own inputs after that run, where they held 0x5a before.
  std::vector<uint8_t> CopiedBy(int64_t rows, size_t shift) {
    std::memset(fixture_.stream->inputs(), 0x5a, kPast * kWidth * sizeof(float));
    EXPECT_TRUE(Run(rows, shift).status.ok());
    const auto* bytes = reinterpret_cast<const uint8_t*>(fixture_.stream->inputs());
    return {bytes, bytes + kPast * kWidth * sizeof(float)};
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::mt19937 random_{1};
  std::shared_ptr<Model> model_;
  float past_[3 * kPast * kWidth], now_[3 * kWidth];
};

TEST_F(InputsInPlaceTest, AnswersAreTheSameAtAnyAddress) {
  for (const int64_t rows : {1, 2, 3}) {
    const Response expected = Run(rows, 0);
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    for (const size_t shift : {1, 2, 4, 12, 16, 33, 36}) {
      const Response response = Run(rows, shift);
      ASSERT_TRUE(response.status.ok()) << response.status;
      for (size_t i = 0; i < expected.outputs.size(); ++i) {
        EXPECT_EQ(response.outputs[i].bytes, expected.outputs[i].bytes) << rows << " at " << shift;
      }
    }
  }
}

TEST_F(InputsInPlaceTest, AlignedFloatsOfALoneRequestAreNotCopied) {
  ASSERT_TRUE(Run(1, 0).status.ok());
  EXPECT_THAT(CopiedBy(1, 0), Each(0x5a));
  EXPECT_THAT(CopiedBy(1, sizeof(float)), Each(0x5a));
  EXPECT_THAT(CopiedBy(1, 1), Not(Each(0x5a)));
}

// Copying zero bytes from a null pointer would fail under the sanitizers' preset.
TEST_F(InputsInPlaceTest, InputsWithoutElementsNeedNoBytes) {
  ModelBuilder b;
  b.Input("none", {"n", "5", "0"}).Input("x", {"n", "1", "8"}).Output("y");
  b.Initializer("third", onnx::TensorProto::INT64, {1}, std::vector<int64_t>{2});
  SetAttribute(b.Node("Gather", {"none", "third"}, {"picked"}), "axis", int64_t{1});
  SetAttribute(b.Node("Concat", {"picked", "x"}, {"y"}), "axis", int64_t{2});
  const auto model =
      fixture_.engine.Load({.id = {"empty", 1}, .path = folder_.Write("e.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  const Response response = fixture_.engine.RunOne(
      **model, {.inputs = {{{1, 5, 0}, nullptr}, {{1, 1, kWidth}, now_}}}, *fixture_.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  EXPECT_EQ(std::memcmp(response.outputs[0].bytes.data(), now_, kWidth * sizeof(float)), 0);
}

TEST_F(InputsInPlaceTest, RequestsThatShareAReplayAreCopied) {
  const Request one = {.inputs = {{{1, kPast, kWidth}, past_}, {{1, 1, kWidth}, now_}}};
  const Request two = {
      .inputs = {{{2, kPast, kWidth}, past_ + kPast * kWidth}, {{2, 1, kWidth}, now_ + kWidth}}};
  const Response all = Run(3, 0);
  ASSERT_TRUE(all.status.ok()) << all.status;
  BatchPlan plan(*model_);
  for (const Request* request : {&one, &two}) EXPECT_TRUE(plan.TryAdd(*model_->Measure(*request)));
  std::string together;
  for (const Response& response : fixture_.engine.Run(plan, {&one, &two}, *fixture_.stream)) {
    ASSERT_TRUE(response.status.ok()) << response.status;
    together += response.outputs[1].bytes;
  }
  EXPECT_EQ(together, all.outputs[1].bytes);
}

}  // namespace
}  // namespace reprise
