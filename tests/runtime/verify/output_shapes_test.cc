// The true sizes of outputs, as functions of the axes.
#include "runtime/verify/output_shapes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

// Maps at strides 2 and 4 of pictures, one after the other over height times width.
constexpr char kFlatHeads[] = R"(graph {
  input %x: f32[b, 3, h, w]
  const %flat: i64[3] = {0, 3, -1}
  %fine: ? = MaxPool(%x) {kernel_shape = [1, 1], strides = [2, 2]}
  %coarse: ? = MaxPool(%fine) {kernel_shape = [1, 1], strides = [2, 2]}
  %a: ? = Reshape(%fine, %flat)
  %b: ? = Reshape(%coarse, %flat)
  %y: ? = Concat(%a, %b) {axis = 2}
  output %y
})";

OutputFit FitFlatHeads(bool multiplies, const std::vector<int64_t>& steps) {
  auto graph = Parse(kFlatHeads);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const std::vector<Extent> strides = {{.stride = 2}, {.stride = 4}};
  std::vector<FitRange> ranges = {
      {.largest = 16}, {.largest = 64, .extents = strides}, {.largest = 64, .extents = strides}};
  for (size_t i = 0; i < steps.size(); ++i) ranges[i].step = steps[i];
  auto fit = FitOutputShapes(*graph, {"b", "h", "w"}, {.axes = {{"b", 2}, {"h", 8}, {"w", 8}}},
                             ranges, multiplies);
  EXPECT_TRUE(fit.ok()) << fit.status();
  return *std::move(fit);
}

TEST(OutputShapesTest, HeightTimesWidthIsAProductOfStrides) {
  const OutputFit fit = FitFlatHeads(/*multiplies=*/true, {1, 4, 4});
  for (const std::string& refusal : fit.refusals) EXPECT_EQ(refusal, "");
  const AffineDim& dim = fit.outputs[0].dims[2];
  EXPECT_EQ(dim.products.size(), 1u);
  EXPECT_TRUE(dim.MovesWith(1) && dim.MovesWith(2) && !dim.MovesWith(0));
  EXPECT_FALSE(dim.IsAxis(1));
  for (int64_t height = 4; height <= 64; height += 4) {
    for (int64_t width = 4; width <= 64; width += 12) {
      EXPECT_EQ(fit.outputs[0].At(std::vector<int64_t>{5, height, width}),
                (Shape{5, 3, height / 2 * (width / 2) + height / 4 * (width / 4)}));
    }
  }
}

TEST(OutputShapesTest, AProductIsRefusedWhereNobodyAskedForItOrRestsAreLeft) {
  for (const OutputFit& fit :
       {FitFlatHeads(/*multiplies=*/false, {1, 4, 4}), FitFlatHeads(/*multiplies=*/true, {})}) {
    EXPECT_EQ(fit.refusals[0], "");
    EXPECT_NE(fit.refusals[1], "");
    EXPECT_NE(fit.refusals[2], "");
  }
}

// Rows of x up to a length made of its size.
OutputFit FitRows(absl::string_view length, int64_t largest) {
  auto graph = Parse(absl::StrCat(R"(graph {
  input %x: f32[b, s]
  const %axes: i64[1] = {1}
  const %begin: i64[1] = {0}
  %size: ? = Shape(%x) {end = 2, start = 1}
)",
                                  length, R"(
  %y: ? = Slice(%x, %begin, %rows, %axes)
  output %y
})"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto fit = FitOutputShapes(*graph, {"b", "s"}, {.axes = {{"b", 2}, {"s", 5}}},
                             {{.largest = 16}, {.largest = largest}});
  EXPECT_TRUE(fit.ok()) << fit.status();
  return *std::move(fit);
}

TEST(OutputShapesTest, ASizeThatIsOtherwiseThanAllOthersIsFound) {
  constexpr absl::string_view kOneLessAt300 = R"(
  const %special: i64[1] = {300}
  %is: ? = Equal(%size, %special)
  %less: ? = Cast(%is) {to = 7}
  %rows: ? = Sub(%size, %less))";
  const OutputFit fit = FitRows(kOneLessAt300, 1000);
  EXPECT_EQ(fit.refusals[0], "");
  EXPECT_THAT(fit.refusals[1], HasSubstr("is 5 at size 5, 6 at 6 and 299 at 300"));
  // Where requests never come near it, it is no obstacle.
  EXPECT_EQ(FitRows(kOneLessAt300, 299).refusals[1], "");
}

TEST(OutputShapesTest, ADimThatEndsGrowingIsRefusedFromThereOn) {
  constexpr absl::string_view kAtMost700 = R"(
  const %most: i64[1] = {700}
  %rows: ? = Min(%size, %most))";
  EXPECT_EQ(FitRows(kAtMost700, 700).refusals[1], "");
  EXPECT_THAT(FitRows(kAtMost700, 701).refusals[1], HasSubstr("700 at 701"));
}

TEST(OutputShapesTest, SizesBeyondThoseThatAreWalkedAreLookedAtWhereARegionEnds) {
  constexpr absl::string_view kTwiceFrom50000 = R"(
  const %most: i64[1] = {50000}
  %is: ? = Equal(%size, %most)
  %less: ? = Cast(%is) {to = 7}
  %rows: ? = Sub(%size, %less))";
  EXPECT_THAT(FitRows(kTwiceFrom50000, 100000).refusals[1], HasSubstr("49999 at 50000"));
  EXPECT_EQ(FitRows(kTwiceFrom50000, 49999).refusals[1], "");
}

TEST(OutputShapesTest, TheSmallestSizeIsTheOneFromWhichOnAllAreTaken) {
  constexpr char kThirdToken[] = R"(graph {
  input %x: f32[b, s]
  const %place: i64[] = {2}
  %token: ? = Gather(%x, %place) {axis = 1}
  %y: ? = Mul(%x, %x)
  output %y
  output %token
})";
  auto graph = Parse(kThirdToken);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto fit = FitOutputShapes(*graph, {"b", "s"}, {.axes = {{"b", 2}, {"s", 5}}},
                                   {{.largest = 16}, {.largest = 64}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->smallest, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(
      FitOutputShapes(*graph, {"b", "s"}, {.axes = {{"b", 2}, {"s", 2}}}, {{}, {}}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(OutputShapesTest, AnAxisOfTooManyGraphsIsRefusedAlone) {
  // As many numbers as the largest of a table of a million that no term says.
  auto graph = Parse(R"(graph {
  input %x: f32[s]
  input %z: f32[b, 4]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %many: i64[] = {1000000}
  const %front: i64[1] = {0}
  %shape: ? = Shape(%x)
  %size: ? = Squeeze(%shape, %front)
  %end: ? = Add(%size, %many)
  %places: ? = Range(%size, %end, %one)
  %most: ? = ReduceMax(%places) {keepdims = 1}
  %y: ? = ConstantOfShape(%most)
  %square: ? = Mul(%z, %z)
  output %y
  output %square
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto fit = FitOutputShapes(*graph, {"s", "b"}, {.axes = {{"s", 2}, {"b", 2}}},
                                   {{.largest = 16}, {.largest = 16}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_THAT(fit->refusals[0], HasSubstr("large tables"));
  EXPECT_EQ(fit->refusals[1], "");
}

}  // namespace
}  // namespace reprise
