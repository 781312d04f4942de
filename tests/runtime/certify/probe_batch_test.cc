#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/certify/probe.h"
#include "tests/runtime/certify/length_models.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using toy::Flatten;
using toy::Inputs;
using toy::kOutput;
using toy::Matrix;
using toy::Outputs;
using toy::Ranges;

struct BatchCase {
  const char* name;
  std::vector<ProbeInput> inputs;
  Outputs (*model)(const Inputs&);
  bool certified;
  std::string reason = "";  // part of it
};

void PrintTo(const BatchCase& c, std::ostream* out) { *out << c.name; }

Outputs Elementwise(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (double& value : x.values) value = std::tanh(value);
  return std::vector<Tensor>{toy::ToTensor(x)};
}

// Sums over a row, so that masks and lengths matter, row by row.
Outputs MaskedSum(const Inputs& inputs) {
  ASSIGN_OR_RETURN(const Matrix x, toy::Embed(inputs[0]));
  const Matrix mask(inputs[1]);
  Matrix sum(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) sum.at(r, 0) += x.at(r, c) * mask.at(r, c);
  }
  return std::vector<Tensor>{toy::ToTensor(sum)};
}

// Mean and deviation over all rows.
Outputs BatchNormalise(const Inputs& inputs) {
  Matrix x(inputs[0]);
  double mean = 0, square = 0;
  for (double value : x.values) mean += value / x.values.size();
  for (double value : x.values) square += (value - mean) * (value - mean) / x.values.size();
  for (double& value : x.values) value = (value - mean) / std::sqrt(square + 1e-5);
  return std::vector<Tensor>{toy::ToTensor(x)};
}

// One scale for the whole tensor, as dynamic quantisation has it.
Outputs QuantisePerTensor(const Inputs& inputs) {
  Matrix x(inputs[0]);
  double largest = 1e-9;
  for (double value : x.values) largest = std::max(largest, std::abs(value));
  for (double& value : x.values) value = std::round(value / largest * 127) * largest / 127;
  return std::vector<Tensor>{toy::ToTensor(x)};
}

// The mask of the first row is used for all.
Outputs FirstRowsMask(const Inputs& inputs) {
  Matrix mask(inputs[1]);
  for (int64_t r = 1; r < mask.rows; ++r) {
    for (int64_t c = 0; c < mask.columns; ++c) mask.at(r, c) = mask.at(0, c);
  }
  return MaskedSum({inputs[0], toy::ToTensor(mask)});
}

Matrix Products(const Matrix& x) {
  Matrix products(x.rows, x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.rows; ++j) {
      for (int64_t c = 0; c < x.columns; ++c) products.at(i, j) += x.at(i, c) * x.at(j, c);
    }
  }
  return products;
}
// [batch, batch]: safe once both dims are cut at the request's rows.
Outputs RowSimilarity(const Inputs& inputs) {
  return std::vector<Tensor>{toy::ToTensor(Products(Matrix(inputs[0])))};
}
// A softmax over batch-mates is not.
Outputs SimilaritySoftmax(const Inputs& inputs) {
  Matrix s = Products(Matrix(inputs[0]));
  for (int64_t r = 0; r < s.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < s.columns; ++c) sum += std::exp(s.at(r, c) / 100);
    for (int64_t c = 0; c < s.columns; ++c) s.at(r, c) = std::exp(s.at(r, c) / 100) / sum;
  }
  return std::vector<Tensor>{toy::ToTensor(s)};
}
Outputs CountsRows(const Inputs& inputs) {
  return std::vector<Tensor>{Tensor::Int64Scalar(inputs[0].shape()[0])};
}
Outputs ConstantAnswer(const Inputs&) { return std::vector<Tensor>{Tensor::Int64s({1, 2, 3})}; }
// Rows are numbered: the answer depends on the place in the batch.
Outputs AddsRowNumber(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) += r;
  }
  return std::vector<Tensor>{toy::ToTensor(x)};
}
// A row sees the deepest element of all of them.
Outputs SeesWhatIsFarBelow(const Inputs& inputs) {
  Matrix x(inputs[0]);
  const double lowest = std::min(*absl::c_min_element(x.values) + 20, 0.0);
  for (double& value : x.values) value += lowest;
  return std::vector<Tensor>{toy::ToTensor(x)};
}
Outputs FailsBeyondFour(const Inputs& inputs) {
  if (inputs[0].shape()[0] > 4) return absl::ResourceExhaustedError("too many rows");
  return Elementwise(inputs);
}

const BatchCase kBatchCases[] = {
    {"Elementwise", {toy::Floats()}, Elementwise, true},
    {"MaskedSum", {toy::Ids(), toy::Mask()}, MaskedSum, true},
    {"BatchNormalise", {toy::Floats()}, BatchNormalise, false, "output 'y' of a request of"},
    {"QuantisePerTensor", {toy::Floats()}, QuantisePerTensor, false},
    {"FirstRowsMask", {toy::Ids(), toy::Mask()}, FirstRowsMask, false},
    {"Similarity", {toy::Floats()}, RowSimilarity, true},
    {"SimilaritySoftmax", {toy::Floats()}, SimilaritySoftmax, false},
    {"Flatten", {toy::Floats()}, Flatten, false, "not by one a row"},
    {"CountsRows", {toy::Floats()}, CountsRows, false},
    {"ConstantAnswer", {toy::Floats()}, ConstantAnswer, true},
    {"AddsRowNumber", {toy::Floats()}, AddsRowNumber, false},
    {"FailsBeyondFour", {toy::Floats()}, FailsBeyondFour, false, "too many rows"},
};

ProbeOptions BatchOptions() {
  return {.axis = "batch", .is_batch = true, .batch_axis = "batch", .dim_size = toy::SumOfTerms};
}

class BatchProbeTest : public testing::TestWithParam<BatchCase> {};

TEST_P(BatchProbeTest, VerdictIsAsExpected) {
  const BatchCase& c = GetParam();
  const auto certificate = ProbeAxis(c.inputs, Ranges(c.inputs), kOutput, c.model, BatchOptions());
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->certified, c.certified) << certificate->reason;
  EXPECT_TRUE(certificate->guards.empty());
  EXPECT_THAT(certificate->reason, HasSubstr(c.reason));
  EXPECT_NE(certificate->reason, "");
  EXPECT_GT(certificate->runs, 0);
  EXPECT_LE(certificate->runs, 20);
}

TEST_P(BatchProbeTest, ABriefLookAndASecondOneSayWhatAWholeOneSays) {
  const BatchCase& c = GetParam();
  const auto whole = ProbeAxis(c.inputs, Ranges(c.inputs), kOutput, c.model, BatchOptions());
  ProbeOptions options = BatchOptions();
  options.brief = true;
  auto brief = ProbeAxis(c.inputs, Ranges(c.inputs), kOutput, c.model, options);
  ASSERT_TRUE(whole.ok() && brief.ok());
  if (brief->certified) {
    EXPECT_LE(brief->runs, 4);
    options.padded_sizes.clear();
    brief = ConfirmAxis(*brief, c.inputs, Ranges(c.inputs), kOutput, c.model, options);
    ASSERT_TRUE(brief.ok());
  }
  EXPECT_EQ(brief->certified, whole->certified) << brief->reason;
}

TEST(BatchProbeTest, ASecondLookSeesWhatABriefOneLeftOut) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  ProbeOptions options = BatchOptions();
  options.brief = true;
  const auto brief = ProbeAxis(inputs, Ranges(inputs), kOutput, SeesWhatIsFarBelow, options);
  ASSERT_TRUE(brief.ok());
  EXPECT_TRUE(brief->certified) << brief->reason;
  options.padded_sizes.clear();
  const auto second =
      ConfirmAxis(*brief, inputs, Ranges(inputs), kOutput, SeesWhatIsFarBelow, options);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->certified);
  EXPECT_THAT(second->reason, HasSubstr("the smallest values"));
}

INSTANTIATE_TEST_SUITE_P(Toys, BatchProbeTest, testing::ValuesIn(kBatchCases),
                         [](const auto& info) { return info.param.name; });

TEST(BatchProbeTest, AnInputWithoutRowsIsSharedByTheBatch) {
  const ProbeInput scale = {.name = "scale", .dtype = DType::kFloat32};
  const auto model = [](const Inputs& inputs) -> Outputs {
    Matrix x(inputs[0]);
    for (double& value : x.values) value *= inputs[1].ToDoubles()[0];
    return std::vector<Tensor>{toy::ToTensor(x)};
  };
  const std::vector<ProbeInput> inputs = {toy::Floats(), scale};
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, BatchOptions());
  ASSERT_TRUE(certificate.ok());
  EXPECT_TRUE(certificate->certified) << certificate->reason;
}

// The first row is bounded from below: a batch-mate that is not the first one loses that.
Outputs BoundsTheFirstRow(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t c = 0; c < x.columns; ++c) x.at(0, c) = std::max(x.at(0, c), -2.5);
  return std::vector<Tensor>{toy::ToTensor(x)};
}
// Sums over the batch that saturate, and the logarithm of one, which no draw around 0 may give.
Outputs SaturatedSum(const Inputs& inputs) {
  double sum = 0;
  for (const double value : inputs[0].ToDoubles()) sum += value * value;
  return std::vector<Tensor>{Tensor::FloatScalar(static_cast<float>(std::tanh(1000 * (1 + sum))))};
}
Outputs NotANumber(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (double& value : x.values) value = std::nan("");
  return std::vector<Tensor>{toy::ToTensor(x)};
}

AxisCertificate Swept(Outputs (*model)(const Inputs&), const std::set<std::string>& fixed = {}) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  ProbeOptions options = BatchOptions();
  options.padded_sizes.clear();
  options.sweeps = 8;
  options.fixed_outputs = fixed;
  const auto found = ConfirmAxis({.axis = "batch", .certified = true}, inputs, Ranges(inputs),
                                 kOutput, model, options);
  EXPECT_TRUE(found.ok()) << found.status();
  return *found;
}

TEST(BatchProbeTest, SweepsSeeWhatFewContentsShow) {
  EXPECT_TRUE(Swept(Elementwise).certified);
  EXPECT_FALSE(Swept(BoundsTheFirstRow).certified);
}

TEST(BatchProbeTest, AnAnswerThatTellsNothingApartIsNoEvidence) {
  EXPECT_THAT(Swept(SaturatedSum).reason, HasSubstr("the same whatever the inputs hold"));
  EXPECT_FALSE(Swept(SaturatedSum).certified);
  EXPECT_TRUE(Swept(SaturatedSum, {"y"}).certified) << "no input reaches it";
  EXPECT_THAT(Swept(NotANumber).reason, HasSubstr("no number in any run"));
  EXPECT_TRUE(Swept(ConstantAnswer).certified) << "integers may well be the same";
}

TEST(BatchProbeTest, RowsMayLieAlongAnotherDim) {
  const ProbeInput x = {
      .name = "x", .dtype = DType::kFloat32, .dims = toy::Dims({"sequence", "batch"})};
  const std::vector<ProbeInput> inputs = {x};
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, Elementwise, BatchOptions());
  ASSERT_TRUE(certificate.ok());
  EXPECT_TRUE(certificate->certified) << certificate->reason;
}

TEST(BatchProbeTest, ConfirmingTriesLargerBatches) {
  const auto model = [](const Inputs& inputs) {
    return inputs[0].shape()[0] < 10 ? Elementwise(inputs) : AddsRowNumber(inputs);
  };
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, BatchOptions());
  ASSERT_TRUE(certificate.ok());
  ASSERT_TRUE(certificate->certified) << certificate->reason;
  ProbeOptions larger = BatchOptions();
  larger.padded_sizes = {8, 32};
  const auto confirmed = ConfirmAxis(*certificate, inputs, Ranges(inputs), kOutput, model, larger);
  ASSERT_TRUE(confirmed.ok());
  EXPECT_FALSE(confirmed->certified);
  EXPECT_THAT(confirmed->reason, HasSubstr("a batch of 32"));
}

}  // namespace
}  // namespace reprise
