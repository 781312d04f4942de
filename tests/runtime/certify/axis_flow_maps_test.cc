// The static part of the certificate, of models that join maps of several strides: necks and heads
// of detectors.
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/certify/axis_flow.h"
#include "tests/runtime/certify/flow_graphs.h"

namespace reprise {
namespace {

// A map that is halved twice, doubled again and joined with the finer one.
AxisFinding FindInNeck(absl::string_view resize, int64_t step) {
  const std::string body = absl::StrCat(R"(
  input %x: f32[2, 3, $S]
  const %none: f32[0] = {}
  const %twice: f32[3] = {1.0, 1.0, 2.0}
  %fine: ? = MaxPool(%x) {kernel_shape = [1], strides = [2]}
  %coarse: ? = MaxPool(%fine) {kernel_shape = [1], strides = [2]}
  %more: ? = Resize(%coarse, %none, %twice) )",
                                        resize, R"( @more
  %y: ? = Concat(%fine, %more) {axis = 1})");
  constexpr int64_t kSizes[] = {12, 20};
  return FindMixing(
      GraphAt(body, kSizes[0]), GraphAt(body, kSizes[1]),
      {.axis = "tokens", .small_size = kSizes[0], .large_size = kSizes[1], .step = step});
}

TEST(AxisFlowMapsTest, AMapThatIsDoubledMeetsAFinerOneAtMultiplesOfItsStride) {
  constexpr char kFloor[] =
      R"({coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"})";
  EXPECT_EQ(FindInNeck(kFloor, 4).verdict, kProved) << MixingWords(FindInNeck(kFloor, 4));
  EXPECT_EQ(FindInNeck("", 4).verdict, kProved);  // The middles of pixels.
  EXPECT_EQ(FindInNeck(kFloor, 1).verdict, kUndecided);
  EXPECT_EQ(FindInNeck(kFloor, 2).verdict, kUndecided);
}

TEST(AxisFlowMapsTest, AMapThatIsDoubledByOtherSamplesIsNotKnown) {
  for (const char* other :
       {R"({coordinate_transformation_mode = "align_corners"})",
        R"({coordinate_transformation_mode = "asymmetric", nearest_mode = "ceil"})"}) {
    const AxisFinding found = FindInNeck(other, 4);
    EXPECT_EQ(found.verdict, kUndecided) << other;
    EXPECT_EQ(MixingWords(found), "node 'more' (Resize) samples between the positions of tokens");
  }
  EXPECT_EQ(FindInNeck(R"({mode = "linear"})", 4).verdict, kMixes);
}

// Two maps of four lines, one twice as fine as the other, one after the other in one dim.
AxisFinding FindInFlatHeads(absl::string_view rest) {
  const auto at = [&](int64_t size) {
    std::vector<int64_t> places;  // the places of each line, the coarse map's last
    for (const int64_t line : {size, size, size, size, size / 2, size / 2, size / 2, size / 2}) {
      for (int64_t i = 0; i < line; ++i) places.push_back(i);
    }
    const std::string body = absl::StrCat(
        R"(
  input %x: f32[2, 3, 4, $S]
  input %mask: bool[2, $S]
  const %s: i64[1] = {$S}
  const %h: i64[1] = {)",
        size / 2, "}\n  const %flat: i64[3] = {2, 3, ", 4 * size,
        "}\n  const %less: i64[3] = {2, 3, ", 2 * size, "}\n  const %sizes: i64[4] = {4, $S, 4, ",
        size / 2, "}\n  const %grid: f32[1, ", 6 * size, "] = {", absl::StrJoin(places, ", "), R"(}
  %all: ? = reprise.LiveExtent(%mask, %s)
  %half: ? = reprise.LiveExtent(%mask, %h) {offset = 1, stride = 2}
  %fewer: ? = MaxPool(%x) {kernel_shape = [1, 1], strides = [1, 2]}
  %fine: ? = Reshape(%x, %flat)
  %coarse: ? = Reshape(%fewer, %less)
  %both: ? = Concat(%fine, %coarse) {axis = 2} @both
)",
        rest);
    return GraphAt(body, size);
  };
  return FindMixing(at(12), at(20),
                    {.axis = "tokens",
                     .small_size = 12,
                     .large_size = 20,
                     .step = 2,
                     .fills = {{"mask", 0}},
                     .live = {"mask"}});
}

TEST(AxisFlowMapsTest, LinesOfSeveralMapsAreProvedWhereEachRowIsMovedByItsOwnEnds) {
  const AxisFinding found = FindInFlatHeads(R"(
  %placed: ? = Add(%both, %grid)
  %y: ? = reprise.LiveCompact(%placed, %sizes, %all, %half)
      {axis = 2, extents = [-1, 0, -1, 1], ranks = [2, 2]})");
  EXPECT_EQ(found.verdict, kProved) << MixingWords(found);
}

TEST(AxisFlowMapsTest, LinesOfSeveralMapsAreNotProvedOtherwise) {
  constexpr const char* kOthers[] = {
      // Nothing is moved.
      "  %y: ? = Add(%both, %grid)",
      // The ends of the other map, or of one map alone.
      R"(  %y: ? = reprise.LiveCompact(%both, %sizes, %half, %all)
      {axis = 2, extents = [-1, 0, -1, 1], ranks = [2, 2]})",
      R"(  %y: ? = reprise.LiveCompact(%both, %sizes, %all)
      {axis = 2, extents = [-1, 0, -1, -1], ranks = [2, 2]})",
      // Something is done to moved elements, or to lines that are not known to lie as before.
      R"(  %moved: ? = reprise.LiveCompact(%both, %sizes, %all, %half)
      {axis = 2, extents = [-1, 0, -1, 1], ranks = [2, 2]}
  %y: ? = Add(%moved, %both))",
      R"(  const %one: i64[1] = {1}
  const %last: i64[1] = {9223372036854775807}
  const %two: i64[1] = {2}
  %cut: ? = Slice(%both, %one, %last, %two)
  %y: ? = Relu(%cut))",
      R"(  const %one: i64[1] = {2}
  %sum: ? = CumSum(%both, %one)
  %y: ? = reprise.LiveCompact(%sum, %sizes, %all, %half)
      {axis = 2, extents = [-1, 0, -1, 1], ranks = [2, 2]})",
  };
  for (const char* other : kOthers) {
    EXPECT_NE(FindInFlatHeads(other).verdict, kProved) << other;
  }
}

}  // namespace
}  // namespace reprise
