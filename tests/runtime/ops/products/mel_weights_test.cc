#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OptionalTensors Filters(int64_t bins, int64_t length, int64_t rate, float lower, float upper) {
  return {I64({}, {bins}), I64({}, {length}), I64({}, {rate}), F32({}, {lower}), F32({}, {upper})};
}

// Corners at 0, 0, 1, 2, 3 and 5: floor((16 + 1) * hertz / 8000).
TEST(MelWeightMatrixTest, TrianglesBetweenTheirCorners) {
  const auto weights = RunOp("MelWeightMatrix", Filters(4, 16, 8000, 0, 4000));
  ASSERT_EQ(ShapeOf(weights), Shape({9, 4}));
  const std::vector<double> numbers = Numbers(weights);
  // Each filter reaches 1 at its centre, and none is below 0.
  for (int64_t bin = 0; bin < 4; ++bin) {
    double most = 0;
    for (int64_t at = 0; at < 9; ++at) {
      EXPECT_GE(numbers[at * 4 + bin], 0);
      most = std::max(most, numbers[at * 4 + bin]);
    }
    EXPECT_EQ(most, 1) << bin;
  }
}

TEST(MelWeightMatrixTest, FiltersThatShareACorner) {
  EXPECT_THAT(Numbers(RunOp("MelWeightMatrix", Filters(3, 8, 8000, 0, 4000))),
              ElementsAre(1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

// Edges beyond half of the rate: nothing is written past the spectrum.
TEST(MelWeightMatrixTest, AnyEdgesAreAnswered) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float upper : {1e6f, 1e30f, infinity, std::nanf(""), -5.0f}) {
    const auto weights = RunOp("MelWeightMatrix", Filters(5, 16, 8000, -1e9f, upper));
    for (const double one : Numbers(weights)) EXPECT_TRUE(one >= 0 && one <= 1) << upper;
  }
}

TEST(MelWeightMatrixTest, OtherDTypesAndNoFilters) {
  const auto half =
      RunOp("MelWeightMatrix", Filters(3, 8, 8000, 0, 4000), {{"output_datatype", int64_t{10}}});
  EXPECT_EQ((*half)[0].dtype(), DType::kFloat16);
  EXPECT_THAT(Numbers(half), ElementsAre(1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ShapeOf(RunOp("MelWeightMatrix", Filters(0, 8, 8000, 0, 4000))), Shape({5, 0}));
}

TEST(MelWeightMatrixTest, NumbersThatMakeNoSenseAreRefusedByName) {
  EXPECT_THAT(ErrorOf(RunOp("MelWeightMatrix", Filters(3, 8, 0, 0, 4000))),
              HasSubstr("sample_rate is 0, not above 0"));
  EXPECT_THAT(ErrorOf(RunOp("MelWeightMatrix", Filters(-3, 8, 8000, 0, 4000))),
              HasSubstr("-3 filters"));
  EXPECT_THAT(ErrorOf(RunOp("MelWeightMatrix", Filters(3, int64_t{1} << 40, 8000, 0, 4000))),
              HasSubstr("length 1099511627776"));
}

}  // namespace
}  // namespace reprise
