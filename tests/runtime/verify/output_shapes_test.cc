// The true sizes of outputs, as functions of the axes.
#include "runtime/verify/output_shapes.h"

#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

// Maps at strides 2 and 4 of pictures, one behind the other over height times width.
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
  auto fit =
      FitOutputShapes(*graph, {"b", "h", "w"}, {.axes = {{"b", 2}, {"h", 8}, {"w", 8}}},
                      {{1, 3}, {16, 32}, {16, 32}}, {{}, strides, strides}, steps, multiplies);
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

}  // namespace
}  // namespace reprise
