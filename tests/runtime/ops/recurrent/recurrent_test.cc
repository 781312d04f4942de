// Layers of one unit, small enough to be followed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Names = std::vector<std::string>;

// h = x + h / 2, so that a state tells which elements it has seen, and in which order.
const Attributes kAdding = {{"activations", Names{"Affine"}},
                            {"activation_alpha", std::vector<float>{1}}};
const Tensor kOne = F32({1, 1, 1}, {1});
const Tensor kHalf = F32({1, 1, 1}, {0.5});
const Tensor kSteps = F32({3, 1, 1}, {1, 2, 4});  // [sequence, batch, size]

Attributes Adding(const std::string& direction) {
  Attributes attributes = kAdding;
  attributes.Set("direction", direction);
  if (direction == "bidirectional") {
    attributes.Set("activations", Names{"affine", "Affine"});
    attributes.Set("activation_alpha", std::vector<float>{1, 1});
  }
  return attributes;
}

TEST(RnnTest, EachStepSeesTheStateBefore) {
  const auto result = RunOp("RNN", {kSteps, kOne, kHalf}, kAdding, 2);
  EXPECT_THAT(Numbers(result), ElementsAre(1, 2.5, 5.25));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(5.25));
  EXPECT_EQ(ShapeOf(result), (Shape{3, 1, 1, 1}));
}

TEST(RnnTest, ReversedStartsAtTheEnd) {
  const auto result = RunOp("RNN", {kSteps, kOne, kHalf}, Adding("reverse"), 2);
  EXPECT_THAT(Numbers(result), ElementsAre(3, 4, 4));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(3));
}

TEST(RnnTest, BothDirectionsLieSideBySide) {
  const auto result = RunOp("RNN", {kSteps, F32({2, 1, 1}, {1, 1}), F32({2, 1, 1}, {0.5, 0.5})},
                            Adding("bidirectional"), 2);
  EXPECT_THAT(Numbers(result), ElementsAre(1, 3, 2.5, 4, 5.25, 4));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(5.25, 3));
}

TEST(RnnTest, RowsEndAtTheirLengths) {
  const Tensor x = F32({3, 3, 1}, {1, 1, 1, 2, 2, 2, 4, 4, 4});
  const OptionalTensors inputs = {
      x, kOne, kHalf, std::nullopt, I32({3}, {3, 2, 0}), F32({1, 3, 1}, {0, 0, 9})};
  const auto forward = RunOp("RNN", inputs, Adding("forward"), 2);
  EXPECT_THAT(Numbers(forward), ElementsAre(1, 1, 0, 2.5, 2.5, 0, 5.25, 0, 0));
  EXPECT_THAT(Numbers(forward, 1), ElementsAre(5.25, 2.5, 0));
  const auto reverse = RunOp("RNN", inputs, Adding("reverse"), 2);
  EXPECT_THAT(Numbers(reverse), ElementsAre(3, 2, 0, 4, 2, 0, 4, 0, 0));
  EXPECT_THAT(Numbers(reverse, 1), ElementsAre(3, 2, 0));
}

TEST(RnnTest, LengthBeyondTheSequenceIsADataError) {
  EXPECT_THAT(ErrorOf(RunOp("RNN", {kSteps, kOne, kHalf, std::nullopt, I32({1}, {4})}, kAdding)),
              HasSubstr("input 4 is 4, outside [0, 3]"));
}

TEST(RnnTest, BatchFirstLayout) {
  Attributes attributes = kAdding;
  attributes.Set("layout", int64_t{1});
  const auto result = RunOp("RNN", {F32({2, 2, 1}, {1, 2, 3, 4}), kOne, kHalf}, attributes, 2);
  EXPECT_THAT(Numbers(result), ElementsAre(1, 2.5, 3, 5.5));
  EXPECT_EQ(ShapeOf(result), (Shape{2, 2, 1, 1}));
  EXPECT_EQ(ShapeOf(result, 1), (Shape{2, 1, 1}));
}

TEST(RnnTest, ClipIsAppliedBeforeTheActivation) {
  Attributes attributes = kAdding;
  attributes.Set("clip", 2.0f);
  EXPECT_THAT(Numbers(RunOp("RNN", {kSteps, kOne, kHalf}, attributes)), ElementsAre(1, 2, 2));
}

TEST(RnnTest, ThresholdedReluWithoutAlphaIsARelu) {
  const Tensor steps = F32({3, 1, 1}, {0.5, -1, 0.25});
  const Tensor none = F32({1, 1, 1}, {0});
  const auto result =
      RunOp("RNN", {steps, kOne, none}, {{"activations", Names{"ThresholdedRelu"}}});
  EXPECT_THAT(Numbers(result), ElementsAre(0.5, 0, 0.25));
}

TEST(RnnTest, UnknownActivationIsNamed) {
  const auto result = RunOp("RNN", {kSteps, kOne, kHalf}, {{"activations", Names{"Sine"}}});
  EXPECT_TRUE(absl::IsUnimplemented(result.status()));
  EXPECT_THAT(ErrorOf(result), HasSubstr("activation 'Sine'"));
}

TEST(RnnTest, WeightsThatDoNotFitAreNamed) {
  EXPECT_THAT(ErrorOf(RunOp("RNN", {kSteps, F32({1, 1, 2}, {1, 1}), kHalf})),
              HasSubstr("input 1 is [1, 1, 2] instead of [1, 1, 1]"));
  EXPECT_THAT(ErrorOf(RunOp("RNN", {kSteps, kOne, kHalf}, {{"hidden_size", int64_t{2}}})),
              HasSubstr("hidden_size is 2"));
}

TEST(GruTest, UpdateGateKeepsTheOldState) {
  // Zero weights make the gates functions of the biases alone: update = sigmoid(0), made = 1.
  const Tensor none = F32({1, 3, 1}, {0, 0, 0});
  const Tensor bias = F32({1, 6}, {0, 0, 1, 0, 0, 0});
  const auto result =
      RunOp("GRU", {kSteps, none, none, bias}, {{"activations", Names{"Sigmoid", "Relu"}}}, 2);
  EXPECT_THAT(Numbers(result), ElementsAre(0.5, 0.75, 0.875));
}

TEST(GruTest, ResetGateBeforeOrBehindTheProduct) {
  const Tensor w = F32({1, 3, 1}, {0, 0, 1});
  const Tensor r = F32({1, 3, 1}, {0, 0, 1});
  const Tensor bias = F32({1, 6}, {0, 0, 0, 0, 0, 2});
  const Tensor x = F32({1, 1, 1}, {1});
  const OptionalTensors inputs = {x, w, r, bias, std::nullopt, F32({1, 1, 1}, {4})};
  Attributes attributes = {{"activations", Names{"Sigmoid", "Relu"}}};
  // 1 + (4 / 2) * 1 + 2, halved, with half of the old 4.
  EXPECT_THAT(Numbers(RunOp("GRU", inputs, attributes)), ElementsAre(4.5));
  attributes.Set("linear_before_reset", int64_t{1});
  // 1 + (4 * 1 + 2) / 2.
  EXPECT_THAT(Numbers(RunOp("GRU", inputs, attributes)), ElementsAre(4));
}

TEST(LstmTest, CellAndPeepholes) {
  const Tensor none = F32({1, 4, 1}, {0, 0, 0, 0});
  const Tensor bias = F32({1, 8}, {0, 0, 0, 1, 0, 0, 0, 0});
  const Attributes attributes = {{"activations", Names{"Sigmoid", "Relu", "Relu"}}};
  const Tensor x = F32({1, 1, 1}, {1});
  const Tensor h = F32({1, 1, 1}, {7}), c = F32({1, 1, 1}, {2});
  const auto plain = RunOp("LSTM", {x, none, none, bias, std::nullopt, h, c}, attributes, 3);
  EXPECT_THAT(Numbers(plain, 2), ElementsAre(1.5));  // 2 / 2 + 1 / 2
  EXPECT_THAT(Numbers(plain, 1), ElementsAre(0.75));
  // Each gate sees the cell: input and forget the old one, output the new one.
  const auto peeping = RunOp(
      "LSTM", {x, none, none, bias, std::nullopt, h, c, F32({1, 3}, {1, 1, 1})}, attributes, 3);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double cell = sigmoid(2) * 2 + sigmoid(2);
  EXPECT_THAT(Numbers(peeping, 2), Pointwise(DoubleNear(1e-6), {cell}));
  EXPECT_THAT(Numbers(peeping, 1), Pointwise(DoubleNear(1e-6), {sigmoid(cell) * cell}));
}

TEST(LstmTest, OnlyTheLastStatesMayBeWanted) {
  Node node;
  node.op = "LSTM";
  const std::vector<std::optional<Tensor>> inputs = {kSteps, F32({1, 4, 1}, {1, 1, 1, 1}),
                                                     F32({1, 4, 1}, {1, 1, 1, 1})};
  node.inputs = {0, 1, 2};
  node.outputs = {kNone, 3, kNone};
  const auto last = Evaluate(node, inputs, 1 << 20);
  const auto all = RunOp("LSTM", inputs, {}, 3);
  EXPECT_EQ(Numbers(last, 1), Numbers(all, 1));
}

}  // namespace
}  // namespace reprise
