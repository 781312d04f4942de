// The static part of the certificate, of models whose padding may become infinite: zeros do not
// take that out.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/certify/axis_flow.h"
#include "tests/runtime/certify/flow_graphs.h"

namespace reprise {
namespace {

constexpr int64_t kFewTokens = 19, kManyTokens = 23;

// Finds in `body`, which may use %x [2, tokens, 4], zeros and ones past and before the end (%ones
// [2, tokens, 1]), x with minus infinity past the end (%hidden) and with zeros (%zeroed).
AxisFinding FindIn(absl::string_view body) {
  const std::string whole = absl::StrCat(R"(
  input %x: f32[2, $S, 4]
  input %mask: bool[2, $S]
  input %weights: f32[4, 4]
  const %low: f32[] = {-inf}
  const %zero: f32[] = {0}
  const %last: i64[1] = {2}
  const %tokens: i64[1] = {1}
  %live: ? = Unsqueeze(%mask, %last)
  %ones: ? = Cast(%live) {to = 1}
  %hidden: ? = Where(%live, %x, %low)
  %zeroed: ? = Where(%live, %x, %zero)
  %inverse: ? = Reciprocal(%weights)
)",
                                         body);
  return FindMixing(GraphAt(whole, kFewTokens), GraphAt(whole, kManyTokens),
                    {.axis = "tokens",
                     .small_size = kFewTokens,
                     .large_size = kManyTokens,
                     .fills = {{"mask", 0}},
                     .live = {"mask"}});
}

// Each makes numbers of %hidden that are not known past the end.
TEST(AxisFlowInfinityTest, ZerosDoNotTakeOutWhatAnyOpMakesOfInfinity) {
  for (const char* made :
       {"MatMul(%hidden, %weights)", "Add(%hidden, %inverse_of_x)", "Sub(%hidden, %hidden)",
        "Mul(%hidden, %x)", "CumSum(%hidden, %tokens)", "Max(%hidden, %inverse_of_x)"}) {
    const AxisFinding found =
        FindIn(absl::StrCat("  %inverse_of_x: ? = Reciprocal(%x)\n", "  %made: ? = ", made, R"(
  %taken: ? = Mul(%made, %ones) @taken
  %y: ? = ReduceSum(%taken, %tokens))"));
    EXPECT_NE(found.verdict, kProved) << made;
  }
}

TEST(AxisFlowInfinityTest, ZerosTakeOutWhatIsFiniteAgain) {
  for (const char* made :
       {"Exp(%hidden)", "Max(%hidden, %x)", "Clip(%hidden, %zero)", "Where(%live, %hidden, %x)",
        "Softmax(%hidden) {axis = 1}", "Transpose(%zeroed) {perm = [0, 1, 2]}"}) {
    const AxisFinding found = FindIn(absl::StrCat("  %made: ? = ", made, R"(
  %taken: ? = Mul(%made, %ones) @taken
  %y: ? = ReduceSum(%taken, %tokens))"));
    EXPECT_EQ(found.verdict, kProved) << made << ": " << MixingWords(found);
  }
}

TEST(AxisFlowInfinityTest, ZerosTimesWeightsThatMayBeInfiniteAreNoZeros) {
  constexpr const char* kProducts[] = {
      "MatMul(%zeroed, %by)",
      "Mul(%zeroed, %scale)",
      R"(Einsum(%zeroed, %by) {equation = "bsc,cd->bsd"})",
  };
  for (const char* product : kProducts) {
    const auto by = [&](absl::string_view weights) {
      return FindIn(absl::StrCat("  const %first: i64[1] = {0}\n  %by: ? = Neg(", weights,
                                 ")\n  %scale: ? = ReduceMax(%by, %first)\n  %made: ? = ", product,
                                 "\n  %y: ? = ReduceSum(%made, %tokens) @sum"));
    };
    EXPECT_EQ(by("%weights").verdict, kProved) << product << ": " << MixingWords(by("%weights"));
    EXPECT_NE(by("%inverse").verdict, kProved) << product;
  }
}

TEST(AxisFlowInfinityTest, WindowsThatReachPastTheEndAskForFiniteWeights) {
  const auto by = [](absl::string_view weights, absl::string_view pads) {
    return FindIn(absl::StrCat(R"(
  const %form: i64[3] = {4, 2, 2}
  %kernel: ? = Reshape()",
                               weights, R"(, %form)
  %columns: ? = Transpose(%zeroed) {perm = [0, 2, 1]}
  %y: ? = Conv(%columns, %kernel) {group = 2, pads = [)",
                               pads, "]} @conv"));
  };
  EXPECT_EQ(by("%weights", "0, 1").verdict, kProved) << MixingWords(by("%weights", "0, 1"));
  EXPECT_EQ(by("%inverse", "0, 1").verdict, kUndecided);
  EXPECT_EQ(MixingWords(by("%inverse", "0, 1")),
            "node 'conv' (Conv) takes out with zeros what may overflow in the padding of tokens");
  EXPECT_EQ(by("%inverse", "1, 0").verdict, kProved) << MixingWords(by("%inverse", "1, 0"));
}

}  // namespace
}  // namespace reprise
