// Weights are parameters by their use, however few numbers they have: models that differ in them
// alone are one graph.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {
namespace {

std::string GraphOf(const ModelBuilder& builder) {
  const auto imported = ImportOnnxBytes(builder.Bytes());
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? Print(imported->graph) : "";
}

ModelBuilder TwoLayers(float number, float slope) {
  ModelBuilder b;
  b.Input("x", {"batch", "3"}).Output("y");
  b.Floats("w", {3, 2}, std::vector<float>(6, number));
  b.Floats("b", {2}, {number, 2 * number});
  b.Floats("scale", {2}, {number, number});
  b.Floats("bias", {2}, {number, number});
  b.Floats("slope", {}, {slope});
  b.Node("MatMul", {"x", "w"}, {"product"});
  b.Node("Add", {"product", "b"}, {"sum"});
  b.Node("LayerNormalization", {"sum", "scale", "bias"}, {"normal"});
  b.Node("Mul", {"normal", "slope"}, {"y"});
  return b;
}

TEST(SmallWeightsTest, NumbersOfWeightsAreInNoGraph) {
  EXPECT_EQ(GraphOf(TwoLayers(1, 3)), GraphOf(TwoLayers(2, 3)));
  const auto imported = ImportOnnxBytes(TwoLayers(1, 3).Bytes());
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(imported->parameters.size(), 4);
}

TEST(SmallWeightsTest, NumbersThatPassesReadAreInTheGraph) {
  EXPECT_NE(GraphOf(TwoLayers(1, 3)), GraphOf(TwoLayers(1, 4)));
}

TEST(SmallWeightsTest, ALineThatIsAddedToScoresStaysAConstant) {
  ModelBuilder b;
  b.Input("q", {"batch", "4", "3"}).Input("k", {"batch", "3", "4"}).Output("y");
  b.Floats("line", {4}, {0, 0, -10000, -10000});
  b.Node("MatMul", {"q", "k"}, {"scores"});
  b.Node("Add", {"scores", "line"}, {"y"});
  const auto imported = ImportOnnxBytes(b.Bytes());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->parameters.empty());
}

// A norm written out, behind a layer of one column: numbers are those of weights alone.
ModelBuilder NormWrittenOut(float number, float epsilon) {
  ModelBuilder b;
  b.Input("x", {"batch", "4"}).Output("y").Output("score");
  b.Floats("two", {}, {2});
  b.Floats("epsilon", {1}, {epsilon});
  b.Floats("scale", {4}, {number, 1, 1, 1});
  b.Floats("shift", {1, 4}, {0, number, 0, 0});
  b.Floats("w", {4, 1}, {number, 1, 1, 1});
  b.Floats("b", {1}, {number});
  b.Node("ReduceMean", {"x"}, {"mean"});
  b.Node("Sub", {"x", "mean"}, {"centred"});
  b.Node("Pow", {"centred", "two"}, {"squares"});
  b.Node("ReduceMean", {"squares"}, {"variance"});
  b.Node("Add", {"variance", "epsilon"}, {"safe"});
  b.Node("Sqrt", {"safe"}, {"spread"});
  b.Node("Div", {"centred", "spread"}, {"normal"});
  b.Node("Mul", {"normal", "scale"}, {"scaled"});
  b.Node("Add", {"shift", "scaled"}, {"y"});
  b.Node("MatMul", {"y", "w"}, {"product"});
  b.Node("Add", {"product", "b"}, {"score"});
  return b;
}

TEST(SmallWeightsTest, ScalesAndShiftsOfNormsThatAreWrittenOutAreWeights) {
  EXPECT_EQ(GraphOf(NormWrittenOut(1, 1)), GraphOf(NormWrittenOut(2, 1)));
  EXPECT_NE(GraphOf(NormWrittenOut(1, 1)), GraphOf(NormWrittenOut(1, 2)));
}

// Each layer adds to what came before, so that the way back to the input is long.
TEST(SmallWeightsTest, ScalesBehindManyLayersAreWeights) {
  const auto stack = [](float number) {
    ModelBuilder b;
    b.Input("x0", {"batch", "4"}).Output("x8");
    b.Floats("scale", {4}, {number, 1, 1, 1});
    for (int i = 0; i < 8; ++i) {
      const std::string x = absl::StrCat("x", i), y = absl::StrCat("y", i);
      b.Node("Mul", {x, "scale"}, {y});
      b.Node("Add", {x, y}, {absl::StrCat("x", i + 1)});
    }
    return b;
  };
  EXPECT_EQ(GraphOf(stack(1)), GraphOf(stack(2)));
}

TEST(SmallWeightsTest, FrequenciesOfPositionsStayConstants) {
  ModelBuilder b;
  b.Input("places", {"batch", "length", "1"}).Output("y");
  b.Floats("frequencies", {4}, {1, 0.1F, 0.01F, 0.001F});
  b.Node("Mul", {"places", "frequencies"}, {"angles"});
  b.Node("Cos", {"angles"}, {"y"});
  const auto imported = ImportOnnxBytes(b.Bytes());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->parameters.empty());
}

TEST(SmallWeightsTest, LinesThatScaleOrMaskScoresStayConstants) {
  for (const char* op : {"Mul", "Add"}) {
    ModelBuilder b;
    b.Input("q", {"batch", "4", "3"}).Input("k", {"batch", "3", "4"}).Output("y");
    b.Floats("scale", {}, {0.5});
    b.Floats("line", {4}, {0, 0, -10000, -10000});
    b.Node("MatMul", {"q", "k"}, {"scores"});
    b.Node("Mul", {"scores", "scale"}, {"scaled"});
    b.Node(op, {"scaled", "line"}, {"y"});
    const auto imported = ImportOnnxBytes(b.Bytes());
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_TRUE(imported->parameters.empty()) << op;
  }
}

TEST(SmallWeightsTest, AWeightThatIsReadInAnotherWayTooStaysAConstant) {
  ModelBuilder b = TwoLayers(1, 3);
  b.Node("Exp", {"b"}, {"power"});
  b.Node("Mul", {"y", "power"}, {"z"});
  b.Output("z");
  const auto imported = ImportOnnxBytes(b.Bytes());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->parameters.size(), 3);
}

}  // namespace
}  // namespace reprise
