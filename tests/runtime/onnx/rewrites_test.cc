#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::ContainsRegex;
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

TEST(RewriteTest, ASplitCutsInAsManyPartsAsItHasResultsNamedOrNot) {
  ModelBuilder builder(11);
  builder.Input("x", {"4"}).Output("y");
  builder.Node("Split", {"x"}, {"y", ""});
  EXPECT_THAT(Text(builder), HasSubstr("%y: ?, _ = Split(%x)"));
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

// Sets a field that the messages which we are built with may not know.
void SetNewField(google::protobuf::Message& message, int number, const std::string& bytes) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(number, bytes);
}

// Adds a function `mine.Act` of one node over its input, as an exporter of format version 10 writes
// it.
onnx::FunctionProto& AddFunction(ModelBuilder& builder, const std::string& op,
                                 const std::string& overload = "") {
  auto& function = *builder.model().add_functions();
  function.set_name("Act");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  if (!overload.empty()) SetNewField(function, 13, overload);
  auto* node = function.add_node();
  node->set_op_type(op);
  node->add_input("a");
  node->add_output("b");
  return function;
}

void ImportMine(ModelBuilder& builder) {
  auto* import = builder.model().add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
}

TEST(RewriteTest, OverloadsOfAFunctionAreToldApart) {
  ModelBuilder builder;
  ImportMine(builder);
  AddFunction(builder, "Exp", "a");
  AddFunction(builder, "Neg", "b");
  AddFunction(builder, "Abs");
  builder.Input("x", {"2"}).Output("y").Output("z").Output("w");
  SetNewField(builder.Node("Act", {"x"}, {"y"}, "first", "mine"), 8, "b");
  SetNewField(builder.Node("Act", {"x"}, {"z"}, "second", "mine"), 8, "a");
  builder.Node("Act", {"x"}, {"w"}, "third", "mine");
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("%y: ? = Neg(%x)"));
  EXPECT_THAT(text, HasSubstr("%z: ? = Exp(%x)"));
  EXPECT_THAT(text, HasSubstr("%w: ? = Abs(%x)"));
}

TEST(RewriteTest, AnOverloadThatTheModelHasNotIsNoOther) {
  ModelBuilder builder;
  ImportMine(builder);
  AddFunction(builder, "Exp", "a");
  builder.Input("x", {"2"}).Output("y");
  SetNewField(builder.Node("Act", {"x"}, {"y"}, "call", "mine"), 8, "b");
  EXPECT_THAT(Unimplemented(builder), HasSubstr("Act"));
}

TEST(RewriteTest, AttributesOfAFunctionHaveDefaults) {
  ModelBuilder builder;
  ImportMine(builder);
  onnx::FunctionProto& function = AddFunction(builder, "LeakyRelu");
  auto* alpha = function.mutable_node(0)->add_attribute();
  alpha->set_name("alpha");
  alpha->set_ref_attr_name("slope");
  alpha->set_type(onnx::AttributeProto::FLOAT);
  onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.25f);
  SetNewField(function, 11, slope.SerializeAsString());
  builder.Input("x", {"2"}).Output("y").Output("z");
  builder.Node("Act", {"x"}, {"y"}, "first", "mine");
  SetAttribute(builder.Node("Act", {"x"}, {"z"}, "second", "mine"), "slope", 2.0f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("%y: ? = LeakyRelu(%x) {alpha = 0.25}"));
  EXPECT_THAT(text, HasSubstr("%z: ? = LeakyRelu(%x) {alpha = 2.0}"));
}

TEST(RewriteTest, ADefaultThatIsNoAttributeIsRefused) {
  ModelBuilder builder;
  ImportMine(builder);
  SetNewField(AddFunction(builder, "Exp"), 11, "\xff\xff");
  builder.Input("x", {"2"}).Output("y");
  builder.Node("Act", {"x"}, {"y"}, "call", "mine");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("function 'Act'"));
}

TEST(RewriteTest, BranchesOfFunctionsKeepTheirNamesFromThoseOfTheCaller) {
  ModelBuilder builder;
  auto* import = builder.model().add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
  auto* function = builder.model().add_functions();
  function->set_name("Choose");
  function->set_domain("mine");
  for (const char* name : {"c", "a"}) function->add_input(name);
  function->add_output("b");
  auto* node = function->add_node();
  node->set_op_type("If");
  node->add_input("c");
  node->add_output("b");
  // The caller's name `a` is also the name of a value in the branches.
  onnx::GraphProto& first = AddBranch(*node, "then_branch");
  AddBranchNode(first, "Relu", {"c"}, "x");
  AddBranchNode(first, "Mul", {"a", "x"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(*node, "else_branch");
  AddBranchNode(second, "Neg", {"a"}, "x");
  second.add_output()->set_name("x");
  builder.Input("k", {}).Input("x", {"2"}).Output("y");
  builder.Node("Choose", {"k", "x"}, {"y"}, "call", "mine");
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("Mul(%x, %"));
  EXPECT_THAT(text, HasSubstr("Neg(%x)"));
}

TEST(RewriteTest, TrainingModeNormalisesByWhatTheInputShows) {
  ModelBuilder builder(15);
  builder.Input("x", {"n", "3", "4"}).Output("y");
  for (const char* name : {"s", "b", "m", "v"}) {
    builder.Initializer<float>(name, onnx::TensorProto::FLOAT, {3}, {1, 2, 3});
  }
  auto& node = builder.Node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "mean", "var"});
  SetAttribute(node, "training_mode", int64_t{1});
  SetAttribute(node, "momentum", 0.5f);
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("Reshape(%x, "));
  EXPECT_THAT(text, HasSubstr("ReduceMean("));
  EXPECT_THAT(text,
              ContainsRegex("%y: \\? = BatchNormalization\\(%x, [^,]+, [^,]+, %[^,]+, %[^,]+\\) "
                            "\\{epsilon = [^,]+\\}"));
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

TEST(RewriteTest, FramesOfAComputedStepAreLeftToTheOp) {
  ModelBuilder builder(17);
  builder.Input("x", {"1", "n", "1"}).Input("step", {}, onnx::TensorProto::INT64).Output("y");
  builder.Initializer<int64_t>("frame", onnx::TensorProto::INT64, {}, {16});
  builder.Node("STFT", {"x", "step", "", "frame"}, {"y"});
  EXPECT_THAT(Text(builder), HasSubstr("%y: ? = STFT(%x, %step, _, %frame)"));
}

ModelBuilder Transform(int64_t frame, bool onesided) {
  ModelBuilder builder(17);
  builder.Input("x", {"1", "n", "1"}).Output("y");
  builder.Initializer<int64_t>("step", onnx::TensorProto::INT64, {}, {16});
  builder.Initializer<int64_t>("frame", onnx::TensorProto::INT64, {}, {frame});
  SetAttribute(builder.Node("STFT", {"x", "step", "", "frame"}, {"y"}, "s"), "onesided",
               int64_t{onesided});
  return builder;
}

TEST(RewriteTest, WavesOfATransformAreAParameter) {
  const auto imported = Import(Transform(400, true));
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->parameters.size(), 1u);
  const Tensor& waves = imported->parameters[0];
  EXPECT_EQ(waves.shape(), (Shape{402, 1, 400}));
  const auto numbers = waves.span<float>();
  for (const int64_t bin : {0, 1, 7, 199, 200}) {
    for (const int64_t i : {0, 1, 123, 399}) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(bin * i) / 400;
      EXPECT_NEAR(numbers[bin * 400 + i], std::cos(angle), 1e-7) << bin << " " << i;
      EXPECT_NEAR(numbers[(201 + bin) * 400 + i], -std::sin(angle), 1e-7) << bin << " " << i;
    }
  }
}

TEST(RewriteTest, TransformsOfMoreWavesThanTheLimitAreLeftToTheOp) {
  EXPECT_THAT(Text(Transform(4096, true)), HasSubstr("= Conv("));
  EXPECT_THAT(Text(Transform(4097, true)), HasSubstr("= STFT("));
  EXPECT_THAT(Text(Transform(4096, false)), HasSubstr("= STFT("));
  EXPECT_THAT(InvalidArgument(Transform(0, true)), HasSubstr("frames of 0 in steps of 16"));
}

TEST(RewriteTest, FramesAreThoseOfSignalsWithAndWithoutADimOfParts) {
  for (const std::vector<std::string>& dims :
       {std::vector<std::string>{"b", "n"}, std::vector<std::string>{"b", "n", "1"}}) {
    ModelBuilder builder(17);
    builder.Input("x", dims).Output("y");
    builder.Initializer<int64_t>("step", onnx::TensorProto::INT64, {}, {16});
    builder.Initializer<int64_t>("frame", onnx::TensorProto::INT64, {}, {32});
    builder.Node("STFT", {"x", "step", "", "frame"}, {"y"}, "s");
    const std::string text = Text(builder);
    EXPECT_THAT(text, HasSubstr("= Reshape(%x, "));
    EXPECT_THAT(text, HasSubstr("= Conv("));
  }
}

// A window that is not as long as its frame: zeros after it, or cut.
TEST(RewriteTest, WindowsAreMadeAsLongAsFrames) {
  for (const int64_t size : {16, 9}) {
    ModelBuilder builder(17);
    builder.Input("x", {"1", "n", "1"}).Output("y");
    builder.Initializer<int64_t>("step", onnx::TensorProto::INT64, {}, {16});
    builder.Initializer<int64_t>("frame", onnx::TensorProto::INT64, {}, {16});
    builder.Floats("window", {size}, std::vector<float>(size, 1));
    builder.Node("STFT", {"x", "step", "window", "frame"}, {"y"}, "s");
    const std::string text = Text(builder);
    EXPECT_EQ(text.find("= Concat(%window, ") != std::string::npos, size != 16) << text;
    EXPECT_THAT(text, HasSubstr("= Conv("));
  }
}

// Half of the missing elements come in front, rounded to zero; a negative number crops.
TEST(RewriteTest, CenterCropPadIsAPad) {
  ModelBuilder builder(18);
  builder.Input("x", {"n", "8", "3"}).Input("size", {"2"}, onnx::TensorProto::INT64).Output("y");
  SetAttribute(builder.Node("CenterCropPad", {"x", "size"}, {"y"}, "c"), "axes",
               std::vector<int64_t>{-3, 1});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("{-3, 1}"));
  EXPECT_THAT(text, ContainsRegex("= Div\\(.*\n"));
  EXPECT_THAT(text, ContainsRegex("%y: \\? = Pad\\(%x, [^,]*, _, [^,)]*\\)"));
}

ModelBuilder Dft(int64_t opset, int64_t length) {
  ModelBuilder builder(opset);
  builder.Input("x", {"b", "n", "1"}).Output("y");
  builder.Initializer<int64_t>("length", onnx::TensorProto::INT64, {}, {length});
  builder.Node("DFT", {"x", "length"}, {"y"}, "d");
  return builder;
}

TEST(RewriteTest, ATransformOfAKnownLengthIsAProductWithWaves) {
  const auto imported = Import(Dft(20, 30));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::string text = Print(imported->graph);
  EXPECT_THAT(text, HasSubstr("= MatMul("));
  EXPECT_THAT(text, HasSubstr("%y: ? = Reshape("));
  ASSERT_EQ(imported->parameters.size(), 1u);
  EXPECT_EQ(imported->parameters[0].shape(), (Shape{30, 2, 60}));
}

TEST(RewriteTest, ATransformOfMoreWavesThanTheLimitStaysWhatItIs) {
  EXPECT_THAT(Text(Dft(20, 2048)), HasSubstr("= MatMul("));
  EXPECT_THAT(Text(Dft(20, 2049)), HasSubstr("%y: ? = DFT(%x, %length) @d"));
}

TEST(RewriteTest, TheAxisOfAnOlderTransformIsAnInput) {
  ModelBuilder builder(17);
  builder.Input("x", {"2", "n", "1"}).Output("y");
  SetAttribute(builder.Node("DFT", {"x"}, {"y"}, "d"), "axis", int64_t{-2});
  EXPECT_THAT(Text(builder), HasSubstr("DFT(%x, _, %\"d/axis\")"));
}

TEST(RewriteTest, AQuantisedLstmIsOneOverItsFloats) {
  const auto layer = [](const std::string& point) {
    ModelBuilder builder;
    builder.Input("x", {"n", "1", "2"}).Output("y");
    for (const char* name : {"w", "r"}) {
      builder.Initializer<int8_t>(name, onnx::TensorProto::INT8, {1, 2, 8},
                                  std::vector<int8_t>(16, 3));
    }
    builder.Initializer<float>("scale", onnx::TensorProto::FLOAT, {1}, {0.5f});
    builder.Initializer<int8_t>("point", onnx::TensorProto::INT8, {1}, {1});
    builder.Node("DynamicQuantizeLSTM",
                 {"x", "w", "r", "", "", "", "", "", "scale", point, "scale", "point"}, {"y"}, "l",
                 "com.microsoft");
    SetAttribute(*builder.graph().mutable_node(0), "hidden_size", int64_t{2});
    return builder;
  };
  EXPECT_THAT(Text(layer("point")), HasSubstr("%y: ? = LSTM(%x, "));
  EXPECT_THAT(InvalidArgument(layer("")), HasSubstr("input 9 is left out"));
}

TEST(RewriteTest, SumsOfIntegersAreRoundedNotCutOff) {
  ModelBuilder builder(13);
  builder.Input("x", {"1", "2", "5", "5"}, onnx::TensorProto::UINT8).Output("y");
  builder.Initializer<uint8_t>("w", onnx::TensorProto::UINT8, {1, 2, 1, 1}, {1, 2});
  builder.Node("ConvInteger", {"x", "w"}, {"y"});
  const std::string text = Text(builder);
  const size_t conv = text.find("= Conv("), round = text.find("= Round("),
               cast = text.find("%y: ? = Cast(");
  EXPECT_LT(conv, round);
  EXPECT_LT(round, cast);
  EXPECT_NE(cast, std::string::npos);
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
