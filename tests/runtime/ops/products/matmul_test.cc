#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const Tensor kA = F32({2, 2}, {1, 2, 3, 4});

TEST(MatMulTest, BatchesBroadcast) {
  const auto result =
      RunOp("MatMul", {F32({2, 1, 1, 2}, {1, 2, 3, 4}), F32({2, 2, 1}, {1, 10, 100, 1000})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 2, 1, 1}));
  EXPECT_THAT(Numbers(result), ElementsAre(21, 2100, 43, 4300));
}

TEST(MatMulTest, VectorsLoseTheirDim) {
  const Tensor v = F32({2}, {1, 10});
  EXPECT_EQ(ShapeOf(RunOp("MatMul", {v, v})), Shape{});
  EXPECT_THAT(Numbers(RunOp("MatMul", {v, kA})), ElementsAre(31, 42));
  EXPECT_THAT(Numbers(RunOp("MatMul", {kA, v})), ElementsAre(21, 43));
}

TEST(MatMulTest, EmptyInnerSizeGivesZeros) {
  EXPECT_THAT(Numbers(RunOp("MatMul", {F32({1, 0}, {}), F32({0, 2}, {})})), ElementsAre(0, 0));
  EXPECT_EQ(ShapeOf(RunOp("MatMul", {F32({0, 2}, {}), kA})), (Shape{0, 2}));
}

TEST(MatMulTest, InnerSizesThatDifferAreNamed) {
  EXPECT_THAT(RunOp("MatMul", {kA, F32({3, 1}, {1, 2, 3})}).status().message(),
              HasSubstr("inner sizes 2 and 3"));
}

TEST(MatMulTest, FiveRowsTakeBothPathsOfTheKernel) {
  EXPECT_THAT(Numbers(RunOp("MatMul", {F32({5, 1}, {1, 2, 3, 4, 5}), F32({1, 2}, {1, -1})})),
              ElementsAre(1, -1, 2, -2, 3, -3, 4, -4, 5, -5));
}

TEST(GemmTest, TransposesScalesAndAddsABroadcastBias) {
  const Attributes attributes = {
      {"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 2.0f}, {"beta", 10.0f}};
  const auto result =
      RunOp("Gemm", {F32({2, 1}, {1, 2}), F32({3, 2}, {1, 0, 0, 1, 1, 1}), F32({3}, {1, 2, 3})},
            attributes);
  EXPECT_THAT(Numbers(result), ElementsAre(12, 24, 36));
}

TEST(MatMulIntegerTest, ZeroPointsAreSubtracted) {
  const auto result = RunOp("MatMulInteger", {U8({1, 2}, {130, 126}), I8({2, 2}, {1, 2, 3, 4}),
                                              U8({}, {128}), I8({2}, {0, 1})});
  EXPECT_THAT(Numbers(result), ElementsAre(-4, -4));
  EXPECT_EQ((*result)[0].dtype(), DType::kInt32);
}

TEST(LinearTest, ActivationComesBeforeTheResidual) {
  const auto result = RunOp(
      "reprise.Linear", {F32({1, 1, 2}, {1, -3}), kA, F32({2}, {1, 1}), F32({1, 1, 2}, {100, 200})},
      {{"activation", std::string("relu")}});
  EXPECT_EQ(ShapeOf(result), (Shape{1, 1, 2}));
  EXPECT_THAT(Numbers(result), ElementsAre(100, 200));
  EXPECT_FALSE(RunOp("reprise.Linear", {kA, kA}, {{"activation", std::string("magic")}}).ok());
}

TEST(LinearTest, BiasAndResidualAreOptional) {
  EXPECT_THAT(Numbers(RunOp("reprise.Linear", {kA, kA})), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(Numbers(RunOp("reprise.Linear", {kA, kA, std::nullopt, kA})),
              ElementsAre(8, 12, 18, 26));
}

TEST(EinsumTest, FormsOfEquations) {
  const auto run = [](const std::string& equation, OptionalTensors inputs) {
    return Numbers(RunOp("Einsum", inputs, {{"equation", equation}}));
  };
  EXPECT_THAT(run("ij,jk", {kA, kA}), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(run("ij->ji", {kA}), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(run("ii->i", {kA}), ElementsAre(1, 4));
  EXPECT_THAT(run("ij->", {kA}), ElementsAre(10));
  EXPECT_THAT(run("...ij,...jk->...ik", {F32({1, 2, 2}, {1, 2, 3, 4}), kA}),
              ElementsAre(7, 10, 15, 22));
  EXPECT_FALSE(RunOp("Einsum", {kA}, {{"equation", std::string("ij,jk")}}).ok());
  EXPECT_FALSE(RunOp("Einsum", {kA}, {{"equation", std::string("ijk->i")}}).ok());
  EXPECT_FALSE(RunOp("Einsum", {kA}, {{"equation", std::string("ij->k")}}).ok());
}

}  // namespace
}  // namespace reprise
