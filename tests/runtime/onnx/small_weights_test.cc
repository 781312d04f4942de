// Weights are parameters by their use, however few numbers they have: models that differ in them
// alone are one graph.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

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

// Returns a norm written out, after a layer of one column: numbers come from weights alone.
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

// Each layer adds to the one before, so that the way back to the input is long.
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

// One model for each role of a weight, made of the numbers that training changes.
struct Role {
  const char* name;
  std::function<ModelBuilder(float number)> model;
};

std::vector<float> Repeated(size_t count, float number) {
  std::vector<float> values(count, number);
  values[0] += 1;
  return values;
}

// Returns a layer over `x`, whose result is "h" with `columns` features.
ModelBuilder Layer(const std::vector<std::string>& dims, int64_t features, int64_t columns) {
  ModelBuilder b;
  b.Input("x", dims);
  b.Floats("w", {features, columns},
           std::vector<float>(static_cast<size_t>(features * columns), 1));
  b.Node("MatMul", {"x", "w"}, {"h"});
  return b;
}

ModelBuilder Similarity(float scale, float shift, bool exponential) {
  ModelBuilder b;
  b.Input("a", {"n", "4"}).Input("b", {"4", "m"}).Output("y").Output("z");
  b.Floats("logit_scale", {}, {scale});
  b.Floats("logit_bias", {}, {shift});
  b.Node("MatMul", {"a", "b"}, {"scores"});
  if (exponential) b.Node("Exp", {"logit_scale"}, {"factor"});
  b.Node("Mul", {"scores", exponential ? "factor" : "logit_scale"}, {"scaled"});
  b.Node("Add", {"scaled", "logit_bias"}, {"y"});
  b.Node("Transpose", {"y"}, {"z"});
  return b;
}

std::vector<Role> Roles() {
  return {
      {"token-type table",
       [](float number) {
         ModelBuilder b;
         b.Input("ids", {"batch", "length"}, onnx::TensorProto::INT64).Output("y");
         b.Floats("table", {2, 4}, Repeated(8, number));
         b.Node("Gather", {"table", "ids"}, {"y"});
         return b;
       }},
      {"position table",
       [](float number) {
         ModelBuilder b = Layer({"batch", "3", "4"}, 4, 4);
         b.Output("y");
         b.Floats("positions", {1, 3, 4}, Repeated(12, number));
         b.Node("Add", {"h", "positions"}, {"y"});
         return b;
       }},
      {"class token",
       [](float number) {
         ModelBuilder b = Layer({"batch", "3", "4"}, 4, 4);
         b.Output("y");
         b.Floats("token", {1, 1, 4}, Repeated(4, number));
         b.Initializer<int64_t>("sizes", onnx::TensorProto::INT64, {3}, {2, 1, 4});
         b.Node("Expand", {"token", "sizes"}, {"tokens"});
         SetAttribute(b.Node("Concat", {"tokens", "h"}, {"y"}), "axis", int64_t{1});
         return b;
       }},
      {"class token that has the dim of its features alone",
       [](float number) {
         ModelBuilder b = Layer({"batch", "3", "4"}, 4, 4);
         b.Output("y");
         b.Floats("token", {4}, Repeated(4, number));
         b.Initializer<int64_t>("sizes", onnx::TensorProto::INT64, {3}, {2, 1, 4});
         b.Node("Expand", {"token", "sizes"}, {"tokens"});
         SetAttribute(b.Node("Concat", {"tokens", "h"}, {"y"}), "axis", int64_t{1});
         return b;
       }},
      {"mask token",
       [](float number) {
         ModelBuilder b = Layer({"batch", "3", "4"}, 4, 4);
         b.Input("masked", {"batch", "3", "1"}, onnx::TensorProto::BOOL).Output("y");
         b.Floats("token", {1, 1, 4}, Repeated(4, number));
         b.Node("Where", {"masked", "token", "h"}, {"y"});
         return b;
       }},
      {"slope",
       [](float number) {
         ModelBuilder b = Layer({"batch", "4"}, 4, 4);
         b.Output("y");
         b.Floats("slope", {1}, {number});
         b.Node("PRelu", {"h", "slope"}, {"y"});
         return b;
       }},
      {"scale and shift of logits",
       [](float number) { return Similarity(number, -number, false); }},
      {"exponential scale of logits", [](float number) { return Similarity(number, 1, true); }},
      {"scale of a layer",
       [](float number) {
         ModelBuilder b = Layer({"batch", "4"}, 4, 4);
         b.Output("y");
         b.Floats("alpha", {}, {number});
         b.Node("Mul", {"alpha", "h"}, {"scaled"});
         b.Node("Add", {"x", "scaled"}, {"y"});
         return b;
       }},
      {"mean and spread",
       [](float number) {
         ModelBuilder b;
         b.Input("picture", {"batch", "3", "height", "width"}).Output("y");
         b.Floats("mean", {1, 3, 1, 1}, Repeated(3, number));
         b.Floats("spread", {3, 1, 1}, Repeated(3, number + 1));
         b.Node("Sub", {"picture", "mean"}, {"centred"});
         b.Node("Div", {"centred", "spread"}, {"y"});
         return b;
       }},
      {"scale of rows quantised as they come",
       [](float number) {
         ModelBuilder b;
         b.Input("x", {"batch", "4"}).Output("y");
         b.Floats("scale", {}, {number});
         b.Node("DynamicQuantizeLinear", {"x"}, {"bytes", "x_scale", "point"});
         b.Node("Mul", {"x_scale", "scale"}, {"y"});
         return b;
       }},
  };
}

TEST(SmallWeightsTest, EveryRoleOfAWeightIsInNoGraphAtAnySize) {
  for (const Role& role : Roles()) {
    EXPECT_EQ(GraphOf(role.model(0.25F)), GraphOf(role.model(0.75F))) << role.name;
  }
}

TEST(SmallWeightsTest, NumbersOfFormsMasksAndTablesOfBytesStayInTheGraph) {
  const auto scaled = [](float number, bool softmax) {
    ModelBuilder b;
    b.Input("q", {"batch", "4", "3"}).Input("k", {"batch", "3", "4"}).Output("y");
    b.Floats("scale", {}, {number});
    b.Node("MatMul", {"q", "k"}, {"scores"});
    b.Node("Mul", {"scores", "scale"}, {softmax ? "scaled" : "y"});
    if (softmax) b.Node("Softmax", {"scaled"}, {"y"});
    return GraphOf(b);
  };
  EXPECT_NE(scaled(0.5F, true), scaled(0.25F, true)) << "the scale of an attention";
  const auto quantised = [](float number) {
    ModelBuilder b = Layer({"batch", "4"}, 4, 4);
    b.Output("y");
    b.Floats("scale", {}, {number});
    b.Node("QuantizeLinear", {"h", "scale"}, {"bytes"});
    b.Node("DequantizeLinear", {"bytes", "scale"}, {"y"});
    return GraphOf(b);
  };
  EXPECT_NE(quantised(0.5F), quantised(0.25F)) << "the scale of quantised data";
  const auto masked = [](float number) {
    ModelBuilder b;
    b.Input("mask", {"batch", "1", "1", "4"}).Output("y");
    b.Floats("causal", {1, 1, 4, 4}, Repeated(16, number));
    b.Node("Add", {"mask", "causal"}, {"y"});
    return GraphOf(b);
  };
  EXPECT_NE(masked(0), masked(-10000)) << "a mask over positions";
}

}  // namespace
}  // namespace reprise
