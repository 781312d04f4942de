#include <gmock/gmock.h>

#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST(RewriteTest, AttributesThatBecameInputsAreInputs) {
  ModelBuilder builder(11);
  builder.Input("x", {"2", "1"}).Output("y");
  SetAttribute(builder.Node("Squeeze", {"x"}, {"a"}), "axes", std::vector<int64_t>{1});
  SetAttribute(builder.Node("Unsqueeze", {"a"}, {"b"}), "axes", std::vector<int64_t>{0});
  auto& sum = builder.Node("ReduceSum", {"b"}, {"c"});
  SetAttribute(sum, "axes", std::vector<int64_t>{-1});
  SetAttribute(sum, "keepdims", int64_t{1});
  auto& split = builder.Node("Split", {"b"}, {"d", "e"});
  SetAttribute(split, "axis", int64_t{1});
  SetAttribute(split, "split", std::vector<int64_t>{1, 1});
  builder.Node("Concat", {"c", "d", "e"}, {"y"});
  SetAttribute(*builder.graph().mutable_node(4), "axis", int64_t{1});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("Squeeze(%x, %\"n/axes\") @n"));
  EXPECT_THAT(text, HasSubstr("Unsqueeze(%a, "));
  EXPECT_THAT(text, HasSubstr("{keepdims = 1}"));
  EXPECT_THAT(text, HasSubstr("Split(%b, %\"n/split\") {axis = 1}"));
}

TEST(RewriteTest, SliceClipPadOfOldOpsets) {
  ModelBuilder builder(9);
  builder.Input("x", {"4"}).Output("y");
  auto& slice = builder.Node("Slice", {"x"}, {"a"}, "s");
  SetAttribute(slice, "starts", std::vector<int64_t>{1});
  SetAttribute(slice, "ends", std::vector<int64_t>{3});
  SetAttribute(builder.Node("Clip", {"a"}, {"b"}, "c"), "max", 6.0f);
  auto& pad = builder.Node("Pad", {"b"}, {"y"}, "p");
  SetAttribute(pad, "pads", std::vector<int64_t>{1, 1});
  SetAttribute(pad, "value", 7.0f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("Slice(%x, %\"s/starts\", %\"s/ends\") @s"));
  EXPECT_THAT(text, HasSubstr("Clip(%a, _, %\"c/max\") @c"));
  EXPECT_THAT(text, HasSubstr("Pad(%b, %\"p/pads\", %\"p/value\") @p"));
}

TEST(RewriteTest, OldSoftmaxFlattensUnlessItsAxisIsTheLast) {
  ModelBuilder builder(11);
  builder.Input("x", {"2", "3", "4"}).Output("y").Output("z");
  SetAttribute(builder.Node("Softmax", {"x"}, {"y"}), "axis", int64_t{-1});
  builder.Node("Softmax", {"x"}, {"z"});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("%y: ? = Softmax(%x) {axis = -1}"));
  EXPECT_THAT(text, HasSubstr("Flatten(%x) {axis = 1}"));
  EXPECT_THAT(text, HasSubstr("%z: ? = Reshape("));
}

TEST(RewriteTest, FunctionsOfTheModelAreInlined) {
  ModelBuilder builder;
  auto* import = builder.model().add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
  auto* function = builder.model().add_functions();
  function->set_name("Leaky");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("slope");
  auto* node = function->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("a");
  node->add_output("t");
  auto* attribute = node->add_attribute();
  attribute->set_name("alpha");
  attribute->set_ref_attr_name("slope");
  attribute->set_type(onnx::AttributeProto::FLOAT);
  node = function->add_node();
  node->set_op_type("Neg");
  node->add_input("t");
  node->add_output("b");
  builder.Input("x", {"2"}).Output("y");
  SetAttribute(builder.Node("Leaky", {"x"}, {"y"}, "call", "mine"), "slope", 0.5f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("LeakyRelu(%x) {alpha = 0.5}"));
  EXPECT_THAT(text, HasSubstr("%y: ? = Neg("));
}

TEST(RewriteTest, SwishAndSwiGluAreGatesOfTheirInput) {
  ModelBuilder builder(28);
  builder.Input("x", {"2"}).Input("y", {"2"}).Output("a").Output("b");
  builder.Node("Swish", {"x"}, {"a"});
  SetAttribute(builder.Node("SwiGLU", {"x", "y"}, {"b"}), "alpha", 0.5f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("%a: ? = com.microsoft.QuickGelu(%x) {alpha = 1.0}"));
  EXPECT_THAT(text, HasSubstr("com.microsoft.QuickGelu(%x) {alpha = 0.5}"));
  EXPECT_THAT(text, HasSubstr("%b: ? = Mul("));
}

TEST(RewriteTest, FramesOfAComputedStepAreRefused) {
  ModelBuilder builder(17);
  builder.Input("x", {"1", "n", "1"}).Input("step", {}, onnx::TensorProto::INT64).Output("y");
  builder.Initializer<int64_t>("frame", onnx::TensorProto::INT64, {}, {16});
  builder.Node("STFT", {"x", "step", "", "frame"}, {"y"});
  const auto imported = Import(builder);
  EXPECT_EQ(imported.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("a frame step or length that is computed"));
}

TEST(RewriteTest, QuantizedImagesWithChannelsLastAreRefused) {
  ModelBuilder builder(13);
  builder.Input("x", {"1", "2", "3", "4"}, onnx::TensorProto::UINT8).Output("y");
  builder.Floats("s", {}, {0.5f});
  builder.Initializer<int64_t>("z", onnx::TensorProto::INT64, {}, {0});
  auto& node = builder.Node("QLinearGlobalAveragePool", {"x", "s", "z", "s", "z"}, {"y"}, "pool",
                            "com.microsoft");
  SetAttribute(node, "channels_last", int64_t{1});
  const auto imported = Import(builder);
  EXPECT_THAT(std::string(imported.status().message()), HasSubstr("'channels_last' = 1"));
}

}  // namespace
}  // namespace reprise
