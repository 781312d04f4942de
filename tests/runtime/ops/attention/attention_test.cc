#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Pointwise;

constexpr float kInf = std::numeric_limits<float>::infinity();

Attributes Settings(int64_t heads, int64_t nan_to_zero = 0, int64_t packed = 0) {
  return {
      {"num_heads", heads}, {"scale", 1.0f}, {"nan_to_zero", nan_to_zero}, {"packed_qkv", packed}};
}

// One batch row, two positions, two heads of size 1. Queries are 0: every key weighs the same.
const Tensor kZero = F32({1, 2, 2}, {0, 0, 0, 0});
const Tensor kValues = F32({1, 2, 2}, {1, 10, 3, 30});

TEST(AttentionTest, HeadsAreSeparate) {
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {kZero, kZero, kValues}, Settings(2))),
              ElementsAre(2, 20, 2, 20));
}

TEST(AttentionTest, KeysAndValuesMayLieHeadByHead) {
  const Tensor values = F32({1, 2, 2, 1}, {1, 3, 10, 30});
  Attributes attributes = Settings(2);
  attributes.Set("v_by_head", int64_t{1});
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {kZero, kZero, values}, attributes)),
              ElementsAre(2, 20, 2, 20));
  // Two heads of queries share one.
  attributes.Set("k_by_head", int64_t{1});
  const Tensor shared = F32({1, 1, 2, 1}, {1, 3}), keys = F32({1, 1, 2, 1}, {0, 0});
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {kZero, keys, shared}, attributes)),
              ElementsAre(2, 2, 2, 2));
  EXPECT_FALSE(RunOp("reprise.Attention", {kZero, keys, values}, attributes).ok());
  EXPECT_FALSE(
      RunOp("reprise.Attention", {kZero, F32({1, 3, 2, 1}, {0, 0, 0, 0, 0, 0}), shared}, attributes)
          .ok());
}

TEST(AttentionTest, ScoresAreScaled) {
  Attributes attributes = Settings(1);
  attributes.Set("scale", 0.5f);
  const auto result =
      RunOp("reprise.Attention",
            {F32({1, 1, 1}, {2}), F32({1, 2, 1}, {0, std::log(3.0f)}), F32({1, 2, 1}, {0, 1})},
            attributes);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-6), {0.75}));
}

TEST(AttentionTest, ASinkTakesItsShareOfEachRow) {
  // Two keys of score 0: a sink of log(2) weighs as much as both, one far below them nothing.
  const Tensor sinks = F32({2}, {std::log(2.0f), -1000});
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {kZero, kZero, kValues, std::nullopt, sinks},
                            Settings(2))),
              Pointwise(DoubleNear(1e-6), {1, 20, 1, 20}));
  // It remains where a mask hides all keys.
  EXPECT_THAT(
      Numbers(RunOp("reprise.Attention",
                    {kZero, kZero, kValues, Bools({2, 2}, {0, 0, 1, 1}), sinks}, Settings(2))),
      Pointwise(DoubleNear(1e-6), {0, 0, 1, 20}));
  EXPECT_FALSE(
      RunOp("reprise.Attention", {kZero, kZero, kValues, std::nullopt, F32({1}, {0})}, Settings(2))
          .ok());
}

TEST(AttentionTest, ACapComesBeforeTheMask) {
  Attributes attributes = Settings(1);
  attributes.Set("softcap", 2.0f);
  const auto result = RunOp("reprise.Attention",
                            {F32({1, 1, 1}, {1}), F32({1, 2, 1}, {0, 1e6f}), F32({1, 2, 1}, {0, 1}),
                             F32({2}, {2 + std::log(3.0f), 0})},
                            attributes);
  EXPECT_THAT(Numbers(result), Pointwise(DoubleNear(1e-6), {0.25}));
}

TEST(AttentionTest, BoolAndAdditiveMasksAgree) {
  const auto kept =
      RunOp("reprise.Attention", {kZero, kZero, kValues, Bools({1, 1, 1, 2}, {0, 1})}, Settings(2));
  const auto added =
      RunOp("reprise.Attention", {kZero, kZero, kValues, F32({2}, {-kInf, 0})}, Settings(2));
  EXPECT_THAT(Numbers(kept), ElementsAre(3, 30, 3, 30));
  EXPECT_THAT(Numbers(added), ElementsAreArray(Numbers(kept)));
}

TEST(AttentionTest, AHiddenKeyWeighsNothingWhateverItsScoreIs) {
  const Tensor queries = F32({1, 1, 1}, {1}), values = F32({1, 3, 1}, {1, 3, 50});
  for (const float infinite : {kInf, -kInf, NAN}) {
    const Tensor keys = F32({1, 3, 1}, {0, 0, infinite});
    for (const Tensor& mask : {Bools({3}, {1, 1, 0}), F32({3}, {0, 0, -kInf})}) {
      EXPECT_THAT(Numbers(RunOp("reprise.Attention", {queries, keys, values, mask}, Settings(1))),
                  ElementsAre(2));
    }
  }
}

TEST(AttentionTest, AFullyMaskedRowIsNaNUnlessAskedToBeZero) {
  const Tensor mask = Bools({2, 2}, {0, 0, 1, 1});
  const auto nan = Numbers(RunOp("reprise.Attention", {kZero, kZero, kValues, mask}, Settings(2)));
  EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(nan[1]));
  EXPECT_EQ(nan[2], 2);
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {kZero, kZero, kValues, mask}, Settings(2, 1))),
              ElementsAre(0, 0, 2, 20));
}

TEST(AttentionTest, PackedEqualsSeparate) {
  const Tensor q = F32({1, 2, 2}, {1, 2, -1, 0}), k = F32({1, 2, 2}, {0, 1, 2, -1});
  const Tensor packed = F32({1, 2, 6}, {1, 2, 0, 1, 1, 10, -1, 0, 2, -1, 3, 30});
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {packed}, Settings(2, 0, 1))),
              ElementsAreArray(Numbers(RunOp("reprise.Attention", {q, k, kValues}, Settings(2)))));
}

TEST(AttentionTest, NoKeysGiveZerosOnlyWhenAsked) {
  const Tensor none = F32({1, 0, 2}, {});
  EXPECT_THAT(Numbers(RunOp("reprise.Attention", {kZero, none, none}, Settings(2, 1))), Each(0));
}

TEST(AttentionTest, OperandsThatDoNotFitAreRefused) {
  EXPECT_FALSE(RunOp("reprise.Attention", {kZero, kZero, kValues}, Settings(3)).ok());
  EXPECT_FALSE(
      RunOp("reprise.Attention", {kZero, kZero, F32({1, 1, 2}, {1, 2})}, Settings(2)).ok());
  EXPECT_FALSE(
      RunOp("reprise.Attention", {kZero, kZero, kValues, F32({3}, {0, 0, 0})}, Settings(2)).ok());
  EXPECT_FALSE(RunOp("reprise.Attention", {kZero}, Settings(2)).ok());
}

TEST(RotaryTest, PositionOutOfTheCacheIsAnError) {
  const Tensor x = F32({1, 1, 1, 2}, {1, 0}), cache = F32({2, 1}, {0, 1});
  EXPECT_TRUE(RunOp("RotaryEmbedding", {x, cache, cache, I64({1, 1}, {1})}).ok());
  EXPECT_EQ(RunOp("RotaryEmbedding", {x, cache, cache, I64({1, 1}, {2})}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RotaryTest, RotatesHalves) {
  const Tensor x = F32({1, 1, 1, 2}, {1, 2});
  const auto result = RunOp("RotaryEmbedding", {x, F32({1, 1, 1}, {0}), F32({1, 1, 1}, {1})});
  EXPECT_THAT(Numbers(result), ElementsAre(-2, 1));
}

}  // namespace
}  // namespace reprise
