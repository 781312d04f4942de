// The texts that a load and a metrics page are turned into.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/generate_report.h"
#include "client/cli/load_report.h"
#include "client/cli/metrics_page.h"

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(PercentileTest, NearestRank) {
  EXPECT_EQ(Percentile({}, 50), 0);
  EXPECT_EQ(Percentile({7}, 99), 7);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 50), 2);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 75), 3);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 100), 4);
}

TEST(GenerateReportTest, TimesAreThoseOfAnswersAndTokensASecondThoseOfTheLoad) {
  GenerateLoadResult result{.seconds = 2};
  result.samples = {{.prompt = 10, .tokens = 3, .first = 8, .total = 12, .between = {1, 3}},
                    {.prompt = 30, .tokens = 1, .first = 20, .total = 20},
                    {.prompt = 5, .error = "INTERNAL: no"}};
  const std::string report = GenerateReport(result);
  EXPECT_THAT(report, HasSubstr("3 requests in 2.00 s, 1 failed"));
  EXPECT_THAT(report, HasSubstr("2.0 new tokens/s, 20.0 prompt tokens/s, 1.00 requests/s"));
  EXPECT_THAT(report, HasSubstr("time to first token"));
  // A request of one token has no time per token.
  EXPECT_THAT(report, ::testing::ContainsRegex("time per output token +2.00 +2.00 "));
  EXPECT_THAT(report, ::testing::ContainsRegex("between two tokens +2.00 +1.00 +3.00"));
  EXPECT_THAT(report, HasSubstr("INTERNAL: no"));
}

Sample Answered(int64_t length, double milliseconds, const char* bucket, const char* capture,
                int64_t replay) {
  return {.length = length,
          .milliseconds = milliseconds,
          .bucket = bucket,
          .capture = capture,
          .replay = replay};
}

TEST(LoadReportTest, BucketsAreInTheOrderOfSizesAndCountDistinctReplays) {
  LoadResult result{.seconds = 2};
  result.samples = {Answered(100, 9, "b1_s128", "replayed", 1),
                    Answered(10, 2, "b2_s16", "captured", 2),
                    Answered(12, 3, "b2_s16", "waited", 2), Answered(40, 4, "exact", "eager", 3)};
  const std::string report = LoadReport(result);
  EXPECT_THAT(report, HasSubstr("4 requests in 2.00 s, 0 failed"));
  EXPECT_THAT(report, HasSubstr("2.0 requests/s, 81 tokens/s"));
  EXPECT_THAT(report, HasSubstr("b2_s16          2        1          2.0         1       1"));
  EXPECT_LT(report.find("b2_s16"), report.find("b1_s128"));
  EXPECT_LT(report.find("b1_s128"), report.find("exact"));
}

TEST(LoadReportTest, RequestsWithoutALengthAreCountedInRows) {
  LoadResult result{.seconds = 2, .has_length = false};
  result.samples = {Answered(100, 9, "b4", "replayed", 1), Answered(10, 2, "b4", "replayed", 2)};
  for (Sample& sample : result.samples) sample.batch = 4;
  const std::string report = LoadReport(result);
  EXPECT_THAT(report, HasSubstr("1.0 requests/s, 4 rows/s"));
  EXPECT_THAT(report, testing::Not(HasSubstr("tokens")));
}

TEST(LoadReportTest, FailuresAreCountedByMessageAndNotTimed) {
  LoadResult result{.seconds = 1};
  result.samples = {{.error = "UNAVAILABLE: draining"},
                    {.error = "UNAVAILABLE: draining"},
                    Answered(10, 2, "b1_s16", "replayed", 1)};
  const std::string report = LoadReport(result);
  EXPECT_THAT(report, HasSubstr("3 requests in 1.00 s, 2 failed"));
  EXPECT_THAT(report, HasSubstr("     2  UNAVAILABLE: draining"));
  EXPECT_THAT(report, HasSubstr("1.0 requests/s, 10 tokens/s"));
}

TEST(MetricsPageTest, SamplesCommentsAndEscapesAreRead) {
  const auto samples = ParseMetrics(
      "# HELP reprise_compiles_total Captures\n"
      "reprise_compiles_total{model=\"a\\\"b\",reason=\"new_shape\"} 3\n"
      "process_cpu_seconds_total 1.5\n"
      "nonsense\n"
      "broken{model=\"a 1\n");
  ASSERT_EQ(samples.size(), 2);
  EXPECT_EQ(samples[0].name, "reprise_compiles_total");
  EXPECT_THAT(samples[0].labels, ElementsAre(Pair("model", "a\"b"), Pair("reason", "new_shape")));
  EXPECT_EQ(samples[0].value, 3);
  EXPECT_EQ(samples[1].value, 1.5);
}

}  // namespace
}  // namespace reprise::cli
