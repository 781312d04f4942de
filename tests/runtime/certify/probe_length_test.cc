// The findings of a probe about an axis: certified or not, and why, and its guards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/certify/probe.h"
#include "tests/runtime/certify/length_models.h"

namespace reprise {
namespace {

using namespace toy;  // NOLINT: every model of the table is one
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

constexpr char kMask[] = "attention_mask";
const std::map<std::string, CountingPlaces> kOneCounts = {{kMask, CountingPlaces::kOne}};

const LengthCase kLengthCases[] = {
    {"MaskedMean", {Ids(), Mask()}, MaskedMean, true, {kMask}},
    {"UnmaskedMean", {Ids()}, UnmaskedMean, false, {}, {}, "output 'y' ("},
    {"MeanThatIgnoresItsMask", {Ids(), Mask()}, UnmaskedMean, false},
    {"WeaklyMaskedMean", {Ids(), Mask()}, WeaklyMaskedMean, false},
    {"Attention", {Ids(), Mask()}, Attention, true, {kMask}, kOneCounts},
    {"AttentionMinusTenThousand",
     {Ids(), Mask()},
     AttentionMinusTenThousand,
     true,
     {kMask},
     kOneCounts},
    {"CausalAttentionJoinedWithTheMask",
     {Ids(), Mask()},
     CausalAttention,
     true,
     {"input_ids", kMask},
     {{kMask, CountingPlaces::kFirst}},
     "for rows that do not begin with it"},
    {"WindowJoinedWithTheMask",
     {Ids(), Mask()},
     WindowAttention,
     true,
     {"input_ids", kMask},
     {{kMask, CountingPlaces::kAll}},
     "for rows that hold it nowhere"},
    {"CausalAttentionUnderAMaskOfFloats",
     {Ids(), FloatMask()},
     CausalAttention,
     true,
     {"input_ids", kMask},
     {{kMask, CountingPlaces::kFirst}}},
    {"WindowUnderAMaskOfFloats",
     {Ids(), FloatMask()},
     WindowAttention,
     true,
     {"input_ids", kMask},
     {{kMask, CountingPlaces::kAll}}},
    {"MaskThatEndsInPadding", {Ids(), Mask()}, EndsInPadding, true, {kMask}, kOneCounts},
    {"LargeIntegersTurnedRound", {Ids("numbers")}, LargeOnesTurnedRound, false},
    {"AttentionMinusSix", {Ids(), Mask()}, AttentionMinusSix, false},
    {"BertWithTypes", {Ids(), Mask(), Ids("token_type_ids")}, Bert, true, {kMask}, kOneCounts},
    {"MaskFromIds", {Ids()}, MaskFromIds, true, {"input_ids"}},
    {"EndOfText", {Ids()}, EndOfText, true, {"input_ids"}},
    {"TokenWise", {Ids()}, TokenWise, true},
    {"TokenWiseWithUnusedMask", {Ids(), Mask()}, TokenWise, true},
    {"FirstToken", {Floats()}, FirstToken, true},
    {"LastToken", {Floats()}, LastToken, false},
    {"Softmax", {Floats()}, Softmax, false, {}, {}, "differs at ["},
    {"ArgMax", {Floats()}, ArgMax, false},
    {"CumSum", {Floats()}, CumSum, true},
    {"ReversedCumSum", {Floats()}, ReversedCumSum, true, {"x"}},
    {"PositionsFromTheEnd", {Floats()}, PositionsFromTheEnd, false},
    {"Sum", {Floats()}, Sum, true, {"x"}},
    {"Flatten", {Floats()}, Flatten, false},
    {"EveryDimThatMovesIsCut", {Floats()}, Similarity, true},
    {"AlwaysFails", {Floats()}, AlwaysFails, false, {}, {}, "op Wonder is unknown"},
    {"AlwaysNan", {Floats()}, AlwaysNan, false, {}, {}, "no run gave a finite number"},
};

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
  const std::vector<ProbeInput> inputs = {Floats()};
  ProbeOptions options = Options();
  options.brief = true;
  const auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, Softmax, options);
  ASSERT_TRUE(certificate.ok());
  EXPECT_FALSE(certificate->certified);
}

INSTANTIATE_TEST_SUITE_P(Toys, LengthProbeTest, testing::ValuesIn(kLengthCases),
                         [](const auto& info) { return info.param.name; });

TEST(LengthProbeTest, EqualSeedsGiveEqualCertificates) {
  const std::vector<ProbeInput> inputs = {Ids(), Mask()};
  const auto a = ProbeAxis(inputs, Ranges(inputs), kOutput, WeaklyMaskedMean, Options());
  const auto b = ProbeAxis(inputs, Ranges(inputs), kOutput, WeaklyMaskedMean, Options());
  EXPECT_EQ(*a, *b);
}

TEST(LengthProbeTest, TheConfiguredFillIsUsed) {
  // The mask of this model is 1 where padding is.
  const auto model = [](const Inputs& inputs) {
    return Pool(inputs, [](double padding) { return 1 - padding; });
  };
  const std::vector<ProbeInput> inputs = {Ids(), Mask()};
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
  const std::vector<ProbeInput> inputs = {Ids(), Mask()};
  auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, Options());
  ASSERT_TRUE(certificate.ok());
  EXPECT_TRUE(certificate->certified) << certificate->reason;
}

// Lengths above `limit` do not exist for this model, as with a table of positions.
TEST(LengthProbeTest, SizesThatTheModelDoesNotTakeAreLeftOut) {
  const std::vector<ProbeInput> inputs = {Floats()};
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
  ProbeInput y = {.name = "y", .dtype = DType::kFloat32, .dims = Dims({"batch", "sequence + 1"})};
  const auto model = [](const Inputs& inputs) -> Outputs { return LastToken({inputs[1]}); };
  const std::vector<ProbeInput> inputs = {Floats(), y};
  auto certificate = ProbeAxis(inputs, Ranges(inputs), kOutput, model, Options());
  ASSERT_TRUE(certificate.ok());
  EXPECT_FALSE(certificate->certified);
  EXPECT_THAT(certificate->reason, HasSubstr("y with 0"));
}

TEST(LengthProbeTest, AnAxisThatNoInputHasIsAnError) {
  const std::vector<ProbeInput> inputs = {Floats()};
  ProbeOptions options = Options();
  options.axis = "past";
  EXPECT_EQ(ProbeAxis(inputs, Ranges(inputs), kOutput, CumSum, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise
