#include "tools/reports/dynamicity_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

v1::ModelDynamicity JudgeText(absl::string_view text, int most_shapes = 0) {
  const auto shapes = ParseShapes(text, "x.csv");
  EXPECT_TRUE(shapes.ok()) << shapes.status().ToString();
  return JudgeShapeFile(*shapes, "x.csv", most_shapes);
}

TEST(DynamicityReportTest, DimsThatAreAlwaysEqualAreOneAxis) {
  const auto report = JudgeText("ids,mask\n1x12,1x12\n1x9,1x9\n2x12,2x12\n");
  ASSERT_EQ(report.axes_size(), 2);
  EXPECT_EQ(report.axes(0).axis(), "ids[0], mask[0]");
  EXPECT_EQ(report.axes(1).axis(), "ids[1], mask[1]");
  EXPECT_EQ(report.distinct(), 3u);
}

TEST(DynamicityReportTest, CountsOfTheFileAreWeightsAndSayNothingOfATrend) {
  const auto report = JudgeText("batch,sequence,count\n1,16,900\n1,32,100\n4,32,24\n");
  EXPECT_EQ(report.requests(), 1024u);
  EXPECT_EQ(report.verdict(), "little");
  EXPECT_EQ(report.trend(), "not known yet");
  EXPECT_EQ(report.cause(), "sequence");
  EXPECT_THAT(report.shapes(0).inputs(), ElementsAre("1", "16"));
}

TEST(DynamicityReportTest, AFileInItsOrderOfArrivalHasATrend) {
  std::string text;
  for (int i = 0; i < 400; ++i) absl::StrAppend(&text, "1x", 10 + i % (i < 200 ? 10 : 60), "\n");
  const auto report = JudgeText(text);
  EXPECT_EQ(report.trend(), "growing");
  EXPECT_EQ(report.verdict(), "a lot");
  EXPECT_THAT(DynamicityText(report, /*server=*/false), HasSubstr("padded to 8 buckets"));
}

TEST(DynamicityReportTest, OnlySoManyShapesAreListedAndTheRestIsCounted) {
  const auto report = JudgeText("5\n5\n6\n7\n8\n", /*most_shapes=*/2);
  EXPECT_EQ(report.shapes_size(), 2);
  EXPECT_EQ(report.unlisted_requests(), 2u);
  EXPECT_THAT(DynamicityText(report, false), HasSubstr("and 2 requests of other shapes"));
}

TEST(DynamicityReportTest, TheCsvIsReadBackAsWhatItWas) {
  const auto report = JudgeText("\"a,b\",mask\n1x12,1x12\n1x9,1x9\n1x12,1x12\n");
  const auto again = JudgeText(DynamicityCsv(report));
  EXPECT_THAT(again.inputs(), ElementsAre("a,b", "mask"));
  EXPECT_EQ(again.requests(), 3u);
  EXPECT_EQ(again.distinct(), 2u);
  EXPECT_EQ(again.entropy_bits(), report.entropy_bits());
}

TEST(DynamicityReportTest, OneShapeHasNoCauseAndInputsOfOneShapeShareAColumn) {
  const auto report = JudgeText("ids,mask\n1x12,1x12\n1x12,1x12\n");
  EXPECT_EQ(report.verdict(), "little");
  const std::string text = DynamicityText(report, /*server=*/true);
  EXPECT_THAT(text, HasSubstr("none: one shape"));
  EXPECT_THAT(text, HasSubstr("ids, mask  requests"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace reprise::cli
