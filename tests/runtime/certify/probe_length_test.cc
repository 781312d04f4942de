#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/certify/numbers.h"
#include "runtime/certify/probe.h"
#include "tests/runtime/certify/toy_models.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using toy::Matrix;

using Outputs = absl::StatusOr<std::vector<Tensor>>;
using Inputs = std::vector<Tensor>;

struct LengthCase {
  const char* name;
  std::vector<ProbeInput> inputs;
  Outputs (*model)(const Inputs&);
  bool certified;
  std::vector<std::string> guards = {};
  std::map<std::string, CountingPlaces> must_count = {};
  std::string reason = "";  // part of it
};

void PrintTo(const LengthCase& c, std::ostream* out) { *out << c.name; }

// Weighs each position with `weight(mask)`, sums and divides by the sum of weights.
template <typename Weight>
Outputs Pool(const Inputs& inputs, Weight weight) {
  ASSIGN_OR_RETURN(const Matrix x, toy::Embed(inputs[0]));
  const Matrix mask(inputs[1]);
  Matrix pooled(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < x.columns; ++c) {
      pooled.at(r, 0) += x.at(r, c) * weight(mask.at(r, c));
      sum += weight(mask.at(r, c));
    }
    pooled.at(r, 0) /= sum;
  }
  return std::vector<Tensor>{toy::ToTensor(pooled)};
}

Outputs MaskedMean(const Inputs& inputs) {
  return Pool(inputs, [](double mask) { return mask; });
}
Outputs WeaklyMaskedMean(const Inputs& inputs) {
  return Pool(inputs, [](double mask) { return std::exp(-7 * (1 - mask)); });
}
Outputs UnmaskedMean(const Inputs& inputs) {
  ASSIGN_OR_RETURN(const Matrix x, toy::Embed(inputs[0]));
  Matrix mean(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) mean.at(r, 0) += x.at(r, c) / x.columns;
  }
  return std::vector<Tensor>{toy::ToTensor(mean)};
}

// Attention of one head: scores by products, softmax over positions. `score(score, query, key,
// mask of the key)` is what a mask makes of one.
template <typename Score>
Outputs AttendBy(const Inputs& inputs, Score score_of) {
  ASSIGN_OR_RETURN(const Matrix x, toy::Embed(inputs[0]));
  const Matrix mask(inputs[1]);
  Matrix y(x.rows, x.columns);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t q = 0; q < x.columns; ++q) {
      std::vector<float> scores(x.columns);
      for (int64_t k = 0; k < x.columns; ++k) {
        scores[k] = score_of(static_cast<float>(3 * x.at(r, q) * x.at(r, k)), q, k, mask.at(r, k));
      }
      const float largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (float& score : scores) sum += score = std::exp(score - largest);
      for (int64_t k = 0; k < x.columns; ++k) y.at(r, q) += scores[k] / sum * x.at(r, k);
    }
  }
  return std::vector<Tensor>{toy::ToTensor(y)};
}
Outputs Attend(const Inputs& inputs, double masked_score) {
  return AttendBy(inputs, [&](float score, int64_t, int64_t, double mask) {
    return score + static_cast<float>((1 - mask) * masked_score);
  });
}
// A table and the mask hide alike.
template <typename Sees>
Outputs AttendJoined(const Inputs& inputs, Sees sees) {
  return AttendBy(inputs, [&](float score, int64_t q, int64_t k, double mask) {
    return sees(q, k) && mask != 0 ? score : std::numeric_limits<float>::lowest();
  });
}
Outputs CausalAttention(const Inputs& inputs) {
  return AttendJoined(inputs, [](int64_t q, int64_t k) { return k <= q; });
}
Outputs WindowAttention(const Inputs& inputs) {
  return AttendJoined(inputs, [](int64_t q, int64_t k) { return std::abs(q - k) <= 1; });
}
Outputs Attention(const Inputs& inputs) {
  return Attend(inputs, std::numeric_limits<float>::lowest());
}
Outputs AttentionMinusTenThousand(const Inputs& inputs) { return Attend(inputs, -10000); }
Outputs AttentionMinusSix(const Inputs& inputs) { return Attend(inputs, -6); }

Outputs TokenWise(const Inputs& inputs) {
  ASSIGN_OR_RETURN(Matrix x, toy::Embed(inputs[0]));
  for (double& value : x.values) value = std::tanh(value) * 2;
  return std::vector<Tensor>{toy::ToTensor(x)};
}

// Positions are added, and a lookup by type.
Outputs Bert(const Inputs& inputs) {
  Matrix types(inputs[2]);
  for (double type : types.values) {
    if (type < -2 || type >= 2) return absl::InvalidArgumentError("type out of range");
  }
  return Attention(inputs);
}

// The mask is made from the ids: 0 is padding.
Outputs MaskFromIds(const Inputs& inputs) {
  Matrix mask(inputs[0]);
  for (double& value : mask.values) value = value != 0;
  return Attention({inputs[0], toy::ToTensor(mask)});
}
// The answer is what stands at the first id 2, the end of the text; the first position if none.
Outputs EndOfText(const Inputs& inputs) {
  const Matrix ids(inputs[0]);
  ASSIGN_OR_RETURN(const Matrix x, toy::Embed(inputs[0]));
  Matrix y(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    int64_t end = 0;
    while (end < x.columns && ids.at(r, end) != 2) ++end;
    y.at(r, 0) = x.at(r, end < x.columns ? end : 0);
  }
  return std::vector<Tensor>{toy::ToTensor(y)};
}

// The answer of every position is what is at the first one.
Outputs FirstToken(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Matrix first(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) first.at(r, 0) = x.at(r, 0);
  return std::vector<Tensor>{toy::ToTensor(first)};
}
Outputs LastToken(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Matrix last(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) last.at(r, 0) = x.at(r, x.columns - 1);
  return std::vector<Tensor>{toy::ToTensor(last)};
}
Outputs Softmax(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < x.columns; ++c) sum += std::exp(x.at(r, c));
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) = std::exp(x.at(r, c)) / sum;
  }
  return std::vector<Tensor>{toy::ToTensor(x)};
}
Outputs ArgMax(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  std::vector<int64_t> best;
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto row = x.values.begin() + r * x.columns;
    best.push_back(std::max_element(row, row + x.columns) - row);
  }
  return std::vector<Tensor>{Tensor::Int64s(best)};
}
Outputs CumSum(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 1; c < x.columns; ++c) x.at(r, c) += x.at(r, c - 1);
  }
  return std::vector<Tensor>{toy::ToTensor(x)};
}
Outputs ReversedCumSum(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = x.columns - 1; c-- > 0;) x.at(r, c) += x.at(r, c + 1);
  }
  return std::vector<Tensor>{toy::ToTensor(x)};
}
Outputs PositionsFromTheEnd(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) x.at(r, c) += x.columns - c;
  }
  return std::vector<Tensor>{toy::ToTensor(x)};
}
// Sum over positions: with zeros as padding it does not change.
Outputs Sum(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Matrix sum(x.rows, 1);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) sum.at(r, 0) += x.at(r, c);
  }
  return std::vector<Tensor>{toy::ToTensor(sum)};
}
// [batch * sequence]: rows of a padded batch do not lie where they lie unpadded.
Outputs Flatten(const Inputs& inputs) {
  return std::vector<Tensor>{inputs[0].Reshaped({inputs[0].num_elements()})};
}
Outputs Similarity(const Inputs& inputs) {
  const Matrix x(inputs[0]);
  Tensor outer = toy::Floats({x.rows, x.columns, x.columns}, [&] {
    std::vector<double> values;
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t i = 0; i < x.columns; ++i) {
        for (int64_t j = 0; j < x.columns; ++j) values.push_back(x.at(r, i) * x.at(r, j));
      }
    }
    return values;
  }());
  return std::vector<Tensor>{std::move(outer)};
}
Outputs AlwaysFails(const Inputs&) { return absl::UnimplementedError("op Wonder is unknown"); }
Outputs AlwaysNan(const Inputs& inputs) {
  Matrix x(inputs[0]);
  for (double& value : x.values) value = std::nan("");
  return std::vector<Tensor>{toy::ToTensor(x)};
}

constexpr char kMask[] = "attention_mask";
const std::map<std::string, CountingPlaces> kOneCounts = {{kMask, CountingPlaces::kOne}};

const LengthCase kCases[] = {
    {"MaskedMean", {toy::Ids(), toy::Mask()}, MaskedMean, true, {kMask}},
    {"UnmaskedMean", {toy::Ids()}, UnmaskedMean, false, {}, {}, "output 'y' ("},
    {"MeanThatIgnoresItsMask", {toy::Ids(), toy::Mask()}, UnmaskedMean, false},
    {"WeaklyMaskedMean", {toy::Ids(), toy::Mask()}, WeaklyMaskedMean, false},
    {"Attention", {toy::Ids(), toy::Mask()}, Attention, true, {kMask}, kOneCounts},
    {"AttentionMinusTenThousand",
     {toy::Ids(), toy::Mask()},
     AttentionMinusTenThousand,
     true,
     {kMask},
     kOneCounts},
    {"CausalAttentionJoinedWithTheMask",
     {toy::Ids(), toy::Mask()},
     CausalAttention,
     true,
     {"input_ids", kMask},
     {{kMask, CountingPlaces::kFirst}},
     "for rows that do not begin with it"},
    {"WindowJoinedWithTheMask",
     {toy::Ids(), toy::Mask()},
     WindowAttention,
     true,
     {"input_ids", kMask},
     {{kMask, CountingPlaces::kAll}},
     "for rows that hold it nowhere"},
    {"AttentionMinusSix", {toy::Ids(), toy::Mask()}, AttentionMinusSix, false},
    {"BertWithTypes",
     {toy::Ids(), toy::Mask(), toy::Ids("token_type_ids")},
     Bert,
     true,
     {kMask},
     kOneCounts},
    {"MaskFromIds", {toy::Ids()}, MaskFromIds, true, {"input_ids"}},
    {"EndOfText", {toy::Ids()}, EndOfText, true, {"input_ids"}},
    {"TokenWise", {toy::Ids()}, TokenWise, true},
    {"TokenWiseWithUnusedMask", {toy::Ids(), toy::Mask()}, TokenWise, true},
    {"FirstToken", {toy::Floats()}, FirstToken, true},
    {"LastToken", {toy::Floats()}, LastToken, false},
    {"Softmax", {toy::Floats()}, Softmax, false, {}, {}, "differs at ["},
    {"ArgMax", {toy::Floats()}, ArgMax, false},
    {"CumSum", {toy::Floats()}, CumSum, true},
    {"ReversedCumSum", {toy::Floats()}, ReversedCumSum, true, {"x"}},
    {"PositionsFromTheEnd", {toy::Floats()}, PositionsFromTheEnd, false},
    {"Sum", {toy::Floats()}, Sum, true, {"x"}},
    {"Flatten", {toy::Floats()}, Flatten, false},
    {"EveryDimThatMovesIsCut", {toy::Floats()}, Similarity, true},
    {"AlwaysFails", {toy::Floats()}, AlwaysFails, false, {}, {}, "op Wonder is unknown"},
    {"AlwaysNan", {toy::Floats()}, AlwaysNan, false, {}, {}, "no run gave a finite number"},
};

ProbeOptions Options() {
  return {.axis = "sequence", .batch_axis = "batch", .dim_size = toy::SumOfTerms};
}

const std::vector<std::string> kOutput = {"y"};

// Ranges of toy inputs: ids and types have one.
std::vector<InputRange> Ranges(const std::vector<ProbeInput>& inputs) {
  std::vector<InputRange> ranges;
  for (const ProbeInput& input : inputs) {
    InputRange range;
    if (input.name == "input_ids") range = {-toy::kVocabulary, toy::kVocabulary - 1, true};
    if (input.name == "token_type_ids") range = {-2, 1, true};
    ranges.push_back(range);
  }
  return ranges;
}

class LengthProbeTest : public testing::TestWithParam<LengthCase> {};

TEST_P(LengthProbeTest, VerdictIsAsExpected) {
  const LengthCase& c = GetParam();
  const auto certificate = ProbeAxis(c.inputs, Ranges(c.inputs), kOutput, c.model, Options());
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->certified, c.certified) << certificate->reason;
  EXPECT_EQ(certificate->axis, "sequence");
  EXPECT_EQ(certificate->guards, c.guards) << certificate->reason;
  EXPECT_EQ(certificate->must_count, c.must_count);
  EXPECT_THAT(certificate->reason, HasSubstr(c.reason));
  EXPECT_NE(certificate->reason, "");
  EXPECT_GT(certificate->runs, 0);
  EXPECT_LE(certificate->runs, 60);
}

TEST_P(LengthProbeTest, ABriefLookFindsTheSameGuardsInFewerRuns) {
  const LengthCase& c = GetParam();
  if (!c.certified) return;  // is never looked at briefly: nothing proves it
  const auto whole = ProbeAxis(c.inputs, Ranges(c.inputs), kOutput, c.model, Options());
  ProbeOptions options = Options();
  options.brief = true;
  const auto brief = ProbeAxis(c.inputs, Ranges(c.inputs), kOutput, c.model, options);
  ASSERT_TRUE(whole.ok() && brief.ok());
  EXPECT_TRUE(brief->certified) << brief->reason;
  EXPECT_EQ(brief->guards, whole->guards);
  EXPECT_EQ(brief->must_count, whole->must_count);
  EXPECT_LE(brief->runs, whole->runs - 5);
}

TEST(LengthProbeTest, ABriefLookSeesPlainLeaks) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  ProbeOptions options = Options();
  options.brief = true;
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, Softmax, options);
  ASSERT_TRUE(certificate.ok());
  EXPECT_FALSE(certificate->certified);
}

INSTANTIATE_TEST_SUITE_P(Toys, LengthProbeTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(LengthProbeTest, EqualSeedsGiveEqualCertificates) {
  const std::vector<ProbeInput> inputs = {toy::Ids(), toy::Mask()};
  const auto a = ProbeAxis(inputs, Ranges(inputs), kOutput, WeaklyMaskedMean, Options());
  const auto b = ProbeAxis(inputs, Ranges(inputs), kOutput, WeaklyMaskedMean, Options());
  EXPECT_EQ(*a, *b);
}

TEST(LengthProbeTest, TheConfiguredFillIsUsed) {
  // The mask of this model is 1 where padding is.
  const auto model = [](const Inputs& inputs) {
    return Pool(inputs, [](double padding) { return 1 - padding; });
  };
  const std::vector<ProbeInput> inputs = {toy::Ids(), toy::Mask()};
  ProbeOptions options = Options();
  auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, options);
  ASSERT_TRUE(certificate.ok());
  EXPECT_FALSE(certificate->certified);
  options.fills[kMask] = 1;
  certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, options);
  ASSERT_TRUE(certificate.ok());
  EXPECT_TRUE(certificate->certified) << certificate->reason;
  EXPECT_THAT(certificate->guards, ElementsAre(kMask));
}

TEST(LengthProbeTest, ALeakBelowTheToleranceIsAccepted) {
  const auto model = [](const Inputs& inputs) {
    return Pool(inputs, [](double mask) { return mask + 1e-9; });
  };
  const std::vector<ProbeInput> inputs = {toy::Ids(), toy::Mask()};
  auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, Options());
  ASSERT_TRUE(certificate.ok());
  EXPECT_TRUE(certificate->certified) << certificate->reason;
}

// Lengths above `limit` do not exist for this model, as with a table of positions.
TEST(LengthProbeTest, SizesThatTheModelDoesNotTakeAreLeftOut) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  for (const auto& [limit, certified] :
       {std::pair{40, true}, std::pair{20, true}, std::pair{8, false}}) {
    const auto model = [limit = limit](const Inputs& inputs) -> Outputs {
      if (inputs[0].shape()[1] > limit) return absl::InvalidArgumentError("too long");
      return CumSum(inputs);
    };
    auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, Options());
    ASSERT_TRUE(certificate.ok());
    EXPECT_EQ(certificate->certified, certified) << certificate->reason;
    EXPECT_THAT(certificate->reason, HasSubstr(certified ? "padded to 16" : "too long"));
  }
}

TEST(LengthProbeTest, ADerivedDimIsPaddedWithItsAxis) {
  // x: [batch, sequence]; y: [batch, sequence + 1], whose last element is the answer.
  ProbeInput y = {
      .name = "y", .dtype = DType::kFloat32, .dims = toy::Dims({"batch", "sequence + 1"})};
  const auto model = [](const Inputs& inputs) -> Outputs { return LastToken({inputs[1]}); };
  const std::vector<ProbeInput> inputs = {toy::Floats(), y};
  auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, Options());
  ASSERT_TRUE(certificate.ok());
  EXPECT_FALSE(certificate->certified);
  EXPECT_THAT(certificate->reason, HasSubstr("y with 0"));
}

TEST(LengthProbeTest, AnAxisThatNoInputHasIsAnError) {
  const std::vector<ProbeInput> inputs = {toy::Floats()};
  ProbeOptions options = Options();
  options.axis = "past";
  EXPECT_EQ(ProbeAxis(inputs, Ranges(inputs), kOutput, CumSum, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Padding shows only beyond the sizes of the first look.
Outputs SoftmaxWhenLong(const Inputs& inputs) {
  return inputs[0].shape()[1] < 100 ? CumSum(inputs) : Softmax(inputs);
}

TEST(LengthProbeTest, ConfirmingLooksAtLongerLengths) {
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

// The first position, and those from 100 to 109 where there are so many.
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

TEST(LengthProbeTest, ConfirmingPadsEachOfTheLatePositions) {
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

// The largest id of a row, a table of 50 of them: what is padded with any of those below is not
// seen, nor are rows that hold a large one.
Outputs LargestId(const Inputs& inputs) {
  const Numbers x = FromTensor(inputs[0]);
  Numbers y = {DType::kFloat32, {x.shape[0]}, std::vector<double>(x.shape[0], 0)};
  for (size_t e = 0; e < x.values.size(); ++e) {
    double& largest = y.values[e / x.shape[1]];
    largest = std::max(largest, x.values[e] == 0 ? 3 : x.values[e]);
  }
  return std::vector<Tensor>{ToTensor(y)};
}

TEST(LengthProbeTest, SweepsMeetWhatFewContentsShow) {
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
  EXPECT_THAT(looked->reason, HasSubstr("length 8 padded to 16"));
}

}  // namespace
}  // namespace reprise
