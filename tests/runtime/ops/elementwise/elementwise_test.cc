#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

TEST(ElementwiseTest, OperandsBroadcastFromTheRight) {
  const auto sum = RunOp("Add", {F32({2, 1}, {10, 20}), F32({3}, {1, 2, 3})});
  EXPECT_EQ(ShapeOf(sum), (Shape{2, 3}));
  EXPECT_THAT(Numbers(sum), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(ElementwiseTest, MiddleDimBroadcasts) {
  const auto product = RunOp("Mul", {F32({2, 1, 2}, {1, 2, 3, 4}), F32({1, 2, 1}, {10, 100})});
  EXPECT_THAT(Numbers(product), ElementsAre(10, 20, 100, 200, 30, 40, 300, 400));
}

TEST(ElementwiseTest, ShapesThatDoNotBroadcastAreRefusedNamingBoth) {
  const auto sum = RunOp("Add", {F32({2}, {1, 2}), F32({3}, {1, 2, 3})});
  EXPECT_EQ(sum.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sum.status().message(), HasSubstr("Add(f32[2], f32[3])"));
}

TEST(ElementwiseTest, DifferentDtypesAreRefused) {
  EXPECT_EQ(RunOp("Add", {F32({1}, {1}), I64({1}, {1})}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(ElementwiseTest, ZeroSizedOperandsGiveZeroSizedResults) {
  EXPECT_EQ(ShapeOf(RunOp("Sub", {F32({2, 0}, {}), F32({1, 1}, {1})})), (Shape{2, 0}));
  EXPECT_EQ(ShapeOf(RunOp("Erf", {F32({0}, {})})), (Shape{0}));
}

TEST(ElementwiseTest, HalfComputesInFloat) {
  const Tensor half =
      Tensor::FromVector<uint16_t>(DType::kFloat16, {2}, {FloatToHalf(1.5f), FloatToHalf(-2.0f)});
  const auto product = RunOp("Mul", {half, half});
  EXPECT_THAT(Numbers(product), ElementsAre(2.25, 4));
  EXPECT_EQ((*product)[0].dtype(), DType::kFloat16);
}

TEST(ElementwiseTest, IntegersWrapAroundAndNeverTrap) {
  const int64_t low = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((*RunOp("Sub", {I64({1}, {low}), I64({1}, {1})}))[0].span<int64_t>()[0],
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ((*RunOp("Div", {I64({1}, {low}), I64({1}, {-1})}))[0].span<int64_t>()[0], low);
  EXPECT_THAT(Numbers(RunOp("Div", {I32({2}, {7, 7}), I32({2}, {0, 2})})), ElementsAre(0, 3));
  EXPECT_THAT(Numbers(RunOp("Mod", {I32({2}, {7, -7}), I32({2}, {0, 4})})), ElementsAre(0, 1));
}

TEST(ElementwiseTest, ModFollowsTheDivisorUnlessFmod) {
  EXPECT_THAT(Numbers(RunOp("Mod", {I64({2}, {-7, 7}), I64({2}, {3, -3})})), ElementsAre(2, -2));
  EXPECT_THAT(Numbers(RunOp("Mod", {F32({2}, {-7, 7}), F32({2}, {3, -3})}, {{"fmod", int64_t{1}}})),
              ElementsAre(-1, 1));
}

// As onnxruntime has it: squares and cubes by one exponent keep the low bits, other powers that
// the type does not hold are its least number.
TEST(ElementwiseTest, PowersThatIntegersDoNotHold) {
  constexpr double kLeast = -2147483648.0;
  const auto power = [](std::vector<int64_t> base, const Tensor& exponent) {
    const auto narrow = RunOp("Cast", {I64({4}, std::move(base))}, {{"to", int64_t{6}}});  // int32
    return Numbers(RunOp("Pow", {narrow->at(0), exponent}));
  };
  EXPECT_THAT(power({0, -1, 2, 46341}, I64({4}, {-2, -3, -1, 2})),
              ElementsAre(kLeast, -1, 0, kLeast));
  EXPECT_THAT(power({0, -1, 2, 46341}, I64({}, {2})), ElementsAre(0, 1, 4, -2147479015.0));
  EXPECT_THAT(power({3, -2, -2, 7}, I64({4}, {21, 31, 33, 70})),
              ElementsAre(kLeast, kLeast, kLeast, kLeast));
}

TEST(ElementwiseTest, PowMixesDtypes) {
  EXPECT_THAT(Numbers(RunOp("Pow", {F32({3}, {1, 2, 3}), I64({}, {2})})), ElementsAre(1, 4, 9));
  EXPECT_THAT(Numbers(RunOp("Pow", {I64({2}, {2, 3}), F32({2}, {3, 0.5f})})), ElementsAre(8, 1));
}

TEST(ElementwiseTest, ErfGeluTanhMatchTheirFormulas) {
  const Tensor x = F32({3}, {-1, 0, 2});
  EXPECT_THAT(Numbers(RunOp("Erf", {x})),
              Pointwise(DoubleNear(1e-6), {-0.8427007929, 0.0, 0.9953222650}));
  EXPECT_THAT(Numbers(RunOp("Gelu", {x})),
              Pointwise(DoubleNear(1e-6), {-0.1586552539, 0.0, 1.9544997361}));
  EXPECT_THAT(Numbers(RunOp("Gelu", {x}, {{"approximate", std::string("tanh")}})),
              Pointwise(DoubleNear(1e-6), {-0.1588080094, 0.0, 1.9545976678}));
  // Halved last, a number above half of the largest one overflows on the way.
  const Tensor large = F32({3}, {1.5e38f, 3e38f, 2});
  EXPECT_THAT(Numbers(RunOp("Gelu", {large})),
              ElementsAre(1.5e38f, 3e38f, DoubleNear(1.9544997361, 1e-6)));
  EXPECT_THAT(Numbers(RunOp("Gelu", {large}, {{"doubled", int64_t{1}}})),
              ElementsAre(1.5e38f, kInf, DoubleNear(1.9544997361, 1e-6)));
  EXPECT_THAT(Numbers(RunOp("Sigmoid", {x})),
              Pointwise(DoubleNear(1e-6), {0.2689414214, 0.5, 0.8807970780}));
}

TEST(ElementwiseTest, RoundTakesHalvesToEven) {
  EXPECT_THAT(Numbers(RunOp("Round", {F32({4}, {0.5f, 1.5f, 2.5f, -0.5f})})),
              ElementsAre(0, 2, 2, 0));
}

TEST(ElementwiseTest, IsNaNAndIsInfSeeSigns) {
  const Tensor x = F32({4}, {kNaN, kInf, -kInf, 1});
  EXPECT_THAT(Numbers(RunOp("IsNaN", {x})), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(Numbers(RunOp("IsInf", {x})), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(Numbers(RunOp("IsInf", {x}, {{"detect_negative", int64_t{0}}})),
              ElementsAre(0, 1, 0, 0));
}

TEST(ElementwiseTest, ComparisonsGiveBools) {
  const auto less = RunOp("LessOrEqual", {I64({3}, {1, 2, 3}), I64({}, {2})});
  EXPECT_THAT(Numbers(less), ElementsAre(1, 1, 0));
  EXPECT_EQ((*less)[0].dtype(), DType::kBool);
  EXPECT_THAT(Numbers(RunOp("Equal", {Bools({2}, {1, 0}), Bools({2}, {2, 1})})), ElementsAre(1, 0));
}

TEST(ElementwiseTest, VariadicOpsFoldAllInputs) {
  const Tensor a = F32({2}, {1, 5}), b = F32({1}, {3}), c = F32({2}, {4, kNaN});
  EXPECT_THAT(Numbers(RunOp("Max", {a, b})), ElementsAre(3, 5));
  EXPECT_THAT(Numbers(RunOp("Min", {a, b})), ElementsAre(1, 3));
  EXPECT_THAT(Numbers(RunOp("Sum", {a, b, b})), ElementsAre(7, 11));
  EXPECT_THAT(Numbers(RunOp("Mean", {a, b})), ElementsAre(2, 4));
  EXPECT_TRUE(std::isnan(Numbers(RunOp("Max", {a, c}))[1]));
}

TEST(ElementwiseTest, WhereBroadcastsAllThree) {
  EXPECT_THAT(Numbers(RunOp("Where", {Bools({2, 1}, {1, 0}), F32({2}, {1, 2}), F32({}, {9})})),
              ElementsAre(1, 2, 9, 9));
}

TEST(ElementwiseTest, ClipBoundsAreOptional) {
  const Tensor x = F32({3}, {-5, 0, 5});
  EXPECT_THAT(Numbers(RunOp("Clip", {x, std::nullopt, F32({}, {1})})), ElementsAre(-5, 0, 1));
  EXPECT_THAT(Numbers(RunOp("Clip", {x, F32({}, {-1})})), ElementsAre(-1, 0, 5));
  EXPECT_THAT(Numbers(RunOp("Clip", {x, F32({}, {3}), F32({}, {1})})), ElementsAre(1, 1, 1));
  // Their defaults are the least and the largest number, which infinity is beyond.
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Tensor ends = F32({3}, {-kInf, kInf, kNaN});
  EXPECT_THAT(Numbers(RunOp("Clip", {ends, std::nullopt, F32({}, {6})})),
              ElementsAre(-kLargest, 6, testing::IsNan()));
  EXPECT_THAT(Numbers(RunOp("Clip", {ends, F32({}, {0})})),
              ElementsAre(0, kLargest, testing::IsNan()));
}

TEST(ElementwiseTest, CastOfWhatIsTooLargeIsTheLeastNumberAndTruthIsKept) {
  EXPECT_THAT(Numbers(RunOp("Cast", {F32({4}, {1.9f, -1.9f, 1e20f, kNaN})}, {{"to", int64_t{6}}})),
              ElementsAre(1, -1, -2147483648.0, -2147483648.0));
  // A missing category is not category 0.
  EXPECT_THAT(Numbers(RunOp("Cast", {F32({1}, {kNaN})}, {{"to", int64_t{7}}})),
              ElementsAre(std::numeric_limits<int64_t>::min()));
  EXPECT_THAT(Numbers(RunOp("Cast", {F32({2}, {kNaN, -3})}, {{"to", int64_t{2}}})),
              ElementsAre(0, 253));
  EXPECT_THAT(Numbers(RunOp("Cast", {F32({3}, {0, 0.5f, kNaN})}, {{"to", int64_t{9}}})),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(Numbers(RunOp("Cast", {Bools({2}, {0, 7})}, {{"to", int64_t{1}}})),
              ElementsAre(0, 1));
}

TEST(ElementwiseTest, CastToAnUnsupportedDtypeNamesIt) {
  const auto result = RunOp("Cast", {F32({1}, {1})}, {{"to", int64_t{8}}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(result.status().message(), HasSubstr("string"));
}

TEST(ElementwiseTest, DropoutIsIdentity) {
  const auto result = RunOp("Dropout", {F32({2}, {1, 2})}, {}, 2);
  EXPECT_THAT(Numbers(result), ElementsAre(1, 2));
  EXPECT_THAT(Numbers(result, 1), ElementsAre(1, 1));
}

}  // namespace
}  // namespace reprise
