// Weights are parameters by their use, however few numbers they have: models that differ in them
// alone are one graph.
#include <gtest/gtest.h>

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
