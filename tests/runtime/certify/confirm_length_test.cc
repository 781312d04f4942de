// A certified axis meets sizes and contents beyond the first look's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/certify/length_cases.h"
#include "runtime/certify/numbers.h"
#include "runtime/certify/probe.h"
#include "tests/runtime/certify/length_models.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using toy::CumSum;
using toy::Inputs;
using toy::kOutput;
using toy::Options;
using toy::Outputs;
using toy::Ranges;
using toy::Softmax;

// Padding shows only beyond the sizes of the first look.
Outputs SoftmaxWhenLong(const Inputs& inputs) {
  return inputs[0].shape()[1] < 100 ? CumSum(inputs) : Softmax(inputs);
}

// A window of 31 takes no shorter length: a bucket of 16 is not padded to, nor is one of 31.
TEST(ConfirmLengthTest, LengthsBelowTheSmallestAreNeitherTakenNorPaddedTo) {
  ProbeOptions options = Options();
  options.padded_sizes = {16, 31, 32, 64, 128};
  options.smallest = 31;
  options.sweeps = 4;
  for (const bool confirming : {false, true}) {
    const std::vector<LengthCase> cases = LengthCases(options, CountingPlaces::kOne, confirming);
    EXPECT_GE(cases.size(), 3u);
    for (const LengthCase& c : cases) {
      EXPECT_GE(c.length, 31);
      EXPECT_LT(c.length, c.padded);
    }
  }
  options.padded_sizes = {16};
  EXPECT_THAT(LengthCases(options, CountingPlaces::kOne, /*confirming=*/true), testing::IsEmpty());
}

TEST(ConfirmLengthTest, ShortLengthsAreCountedFromTheSmallest) {
  ProbeOptions options = Options();
  options.padded_sizes = {800};
  options.smallest = 400;
  std::vector<int64_t> lengths;
  for (const LengthCase& c : LengthCases(options, CountingPlaces::kOne, /*confirming=*/false)) {
    lengths.push_back(c.length);
  }
  EXPECT_THAT(lengths, testing::ElementsAre(404, 400, 401, 412, 799));
}

TEST(ConfirmLengthTest, LengthsAreMultiplesOfTheStep) {
  ProbeOptions options = Options();
  options.padded_sizes = {128, 256, 512};
  options.smallest = options.step = 32;
  options.sweeps = 4;
  for (const bool confirming : {false, true}) {
    const std::vector<LengthCase> cases = LengthCases(options, CountingPlaces::kOne, confirming);
    EXPECT_GE(cases.size(), 5u);
    for (const LengthCase& c : cases) {
      EXPECT_EQ(c.length % 32, 0);
      EXPECT_GE(c.length, 32);
      EXPECT_LT(c.length, c.padded);
    }
  }
}

TEST(ConfirmLengthTest, ConfirmingLooksAtLongerLengths) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, SoftmaxWhenLong, Options());
  ASSERT_TRUE(certificate.ok());
  ASSERT_TRUE(certificate->certified) << certificate->reason;

  ProbeOptions longer = Options();
  longer.padded_sizes = {256, 512};
  const auto softmax =
      ConfirmAxis(*certificate, inputs, Ranges(inputs), kOutput, SoftmaxWhenLong, longer);
  ASSERT_TRUE(softmax.ok());
  EXPECT_FALSE(softmax->certified);
  EXPECT_THAT(softmax->reason, HasSubstr("padded to 256"));
  const auto sum = ConfirmAxis(*certificate, inputs, Ranges(inputs), kOutput, CumSum, longer);
  ASSERT_TRUE(sum.ok());
  EXPECT_TRUE(sum->certified);
  EXPECT_EQ(sum->runs, certificate->runs + 8);
}

// Returns the sum of the first position and of positions 100 to 109 where they exist.
Outputs FirstAndLate(const Inputs& inputs) {
  const Numbers x = FromTensor(inputs[0]);
  Numbers y = {DType::kFloat32, {x.shape[0]}, {}};
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    y.values.push_back(x.values[row * x.shape[1]]);
    for (int64_t i = 100; i < std::min<int64_t>(x.shape[1], 110); ++i) {
      y.values.back() += x.values[row * x.shape[1] + i];
    }
  }
  return std::vector<Tensor>{ToTensor(y)};
}

TEST(ConfirmLengthTest, ConfirmingPadsEachOfTheLatePositions) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, FirstAndLate, Options());
  ASSERT_TRUE(certificate.ok());
  ASSERT_TRUE(certificate->certified) << certificate->reason;
  ProbeOptions longer = Options();
  longer.padded_sizes = {512};
  const auto confirmed =
      ConfirmAxis(*certificate, inputs, Ranges(inputs), kOutput, FirstAndLate, longer);
  ASSERT_TRUE(confirmed.ok());
  EXPECT_FALSE(confirmed->certified);
  EXPECT_THAT(confirmed->reason, HasSubstr("length 5 padded to 512"));
}

// Returns the largest id of a row, from a table of 50 ids: padding with a smaller id does not show,
// nor does padding in rows that hold a large one.
Outputs LargestId(const Inputs& inputs) {
  const Numbers x = FromTensor(inputs[0]);
  Numbers y = {DType::kFloat32, {x.shape[0]}, std::vector<double>(x.shape[0], 0)};
  for (size_t e = 0; e < x.values.size(); ++e) {
    double& largest = y.values[e / x.shape[1]];
    largest = std::max(largest, x.values[e] == 0 ? 3 : x.values[e]);
  }
  return std::vector<Tensor>{ToTensor(y)};
}

TEST(ConfirmLengthTest, SweepsMeetWhatFewContentsShow) {
  const std::vector<ProbeInput> inputs = {
      {.name = "ids", .dtype = DType::kInt64, .dims = toy::Dims({"batch", "sequence"})}};
  const std::vector<InputRange> ranges = {{.low = 0, .high = 7, .limited = true}};
  // Id 0, with which padding is filled, counts as 3: a row of one smaller id alone shows it.
  const AxisCertificate claimed = {.axis = "sequence", .certified = true, .guards = {"ids"}};
  ProbeOptions options = Options();
  options.padded_sizes = {16};
  options.sweeps = 16;
  const auto looked = ConfirmAxis(claimed, inputs, ranges, kOutput, LargestId, options);
  ASSERT_TRUE(looked.ok());
  EXPECT_FALSE(looked->certified);
  EXPECT_THAT(looked->reason, HasSubstr("padded to 16"));
}

}  // namespace
}  // namespace reprise
