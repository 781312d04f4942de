// Whether a packed form that lets requests meet is noticed.
#include "runtime/verify/packing_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// y = x + the mean of its row, of floats x [rows, length]. Packed, rows next to a request get into
// its mean where `leaks` says so.
class MeanRunner final : public ProofRunner {
 public:
  enum class Leak { kNone, kBatchMates, kBehind, kShape };
  explicit MeanRunner(Leak leak) : leak_(leak) {}

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) override {
    return std::vector<Tensor>{Answer(inputs[0], 0)};
  }
  absl::StatusOr<std::vector<std::vector<Tensor>>> RunPacked(absl::Span<const Part> parts,
                                                             const Part* behind) override {
    ++packed_runs_;
    double others = 0;
    if (leak_ == Leak::kBatchMates) {
      for (const Part& part : parts) others += (*part.inputs)[0].ToDoubles()[0];
    }
    if (leak_ == Leak::kBehind && behind != nullptr) others = (*behind->inputs)[0].ToDoubles()[0];
    std::vector<std::vector<Tensor>> answers;
    for (const Part& part : parts) answers.push_back({Answer((*part.inputs)[0], others)});
    if (leak_ == Leak::kShape) answers[0] = {Tensor::FloatScalar(1)};
    return answers;
  }
  int packed_runs() const { return packed_runs_; }

 private:
  static Tensor Answer(const Tensor& x, double others) {
    const std::vector<double> values = x.ToDoubles();
    const int64_t length = x.shape()[1];
    std::vector<float> y;
    for (size_t i = 0; i < values.size(); ++i) {
      double mean = others;
      const size_t row = i / length * length;
      for (size_t j = row; j < row + length; ++j) mean += values[j] / static_cast<double>(length);
      y.push_back(static_cast<float>(values[i] + mean));
    }
    return Tensor::FromVector(DType::kFloat32, x.shape(), y);
  }

  const Leak leak_;
  int packed_runs_ = 0;
};

class PackingCheckTest : public testing::Test {
 protected:
  absl::Status Check(MeanRunner& runner, const PackingCheck::Rounds& rounds) {
    PackingCheck check({.sequence_axis = 1, .longest = 512});
    const absl::Status status = check.Run({.drawer = &drawer_,
                                           .sequence = "s",
                                           .batch = "n",
                                           .output_names = names_,
                                           .runner = &runner},
                                          rounds);
    answers_ = check.answers();
    return status;
  }

  const std::vector<ProbeInput> inputs_ = {
      {.name = "x", .dtype = DType::kFloat32, .dims = {{.symbol = "n"}, {.symbol = "s"}}}};
  const std::vector<InputRange> ranges_ = std::vector<InputRange>(1);
  const ProbeOptions options_ = {.axis = "s", .batch_axis = "n", .dim_size = DimSize};
  const Drawer drawer_{inputs_, ranges_, options_};
  const std::vector<std::string> names_ = {"y"};
  int answers_ = 0;
};

TEST_F(PackingCheckTest, RequestsThatGetTheirOwnAnswersPass) {
  MeanRunner runner(MeanRunner::Leak::kNone);
  EXPECT_TRUE(Check(runner, {.sweeps = 1, .any_mask = true}).ok());
  EXPECT_GT(answers_, 10);
  EXPECT_EQ(runner.packed_runs(), 6);
}

TEST_F(PackingCheckTest, ARequestThatSeesItsNeighboursIsNamedWithOutputAndLength) {
  MeanRunner runner(MeanRunner::Leak::kBatchMates);
  const absl::Status status = Check(runner, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("output 'y' at length 5 changes when requests lie"));
}

TEST_F(PackingCheckTest, TokensThatBelongToNobodyAreTriedInSweepsAlone) {
  MeanRunner runner(MeanRunner::Leak::kBehind);
  EXPECT_TRUE(Check(runner, {}).ok());
  EXPECT_FALSE(Check(runner, {.sweeps = 1}).ok());
}

TEST_F(PackingCheckTest, AnAnswerOfAnotherShapeIsRefused) {
  MeanRunner runner(MeanRunner::Leak::kShape);
  EXPECT_THAT(Check(runner, {}).message(), HasSubstr("output 'y' at length 5 has shape []"));
}

}  // namespace
}  // namespace reprise
