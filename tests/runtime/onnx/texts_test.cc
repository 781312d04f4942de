// Text in files: which values are text, and which nodes are refused for it.
#include "runtime/onnx/values/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Words = std::vector<std::string>;

// Inputs of text a and b [n, 2], of numbers x [n, 2], of integers k [n, 2].
struct TextModel : ModelBuilder {
  TextModel() : ModelBuilder(19) {
    auto* import = model().add_opset_import();
    import->set_domain(kClassicDomain);
    import->set_version(3);
    Input("a", {"n", "2"}, onnx::TensorProto::STRING);
    Input("b", {"n", "2"}, onnx::TensorProto::STRING);
    Input("x", {"n", "2"}).Input("k", {"n", "2"}, onnx::TensorProto::INT64).Output("y");
  }
  onnx::NodeProto& Classic(const std::string& op, const std::string& input) {
    return Node(op, {input}, {"y"}, "coder", kClassicDomain);
  }
};

TEST(TextsTest, InputsAndOutputsOfTextSaySoAndAreIntegers) {
  TextModel b;
  auto& concat = b.Node("Concat", {"a", "b"}, {"y"});
  SetAttribute(concat, "axis", int64_t{1});
  const auto model = Import(b);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->inputs[0].text);
  EXPECT_EQ(model->inputs[0].dtype, DType::kInt64);
  EXPECT_FALSE(model->inputs[2].text);
  EXPECT_TRUE(model->outputs[0].text);
  EXPECT_EQ(TypeText(model->outputs[0]), "text");
  EXPECT_NE(TypeText(model->inputs[3]), "text");
}

TEST(TextsTest, TheVocabularyHasTheTextsOfAttributesInitializersConstantsAndBranches) {
  TextModel b;
  auto* of_initializer = b.graph().add_initializer();
  of_initializer->set_name("initial");
  of_initializer->set_data_type(onnx::TensorProto::STRING);
  of_initializer->add_dims(1);
  of_initializer->add_string_data("initial");
  SetAttribute(b.Node("Constant", {}, {"c"}, "constant"), "value_string", std::string("constant"));
  b.Node("Equal", {"a", "initial"}, {"first"}, "first");
  b.Node("Equal", {"a", "c"}, {"second"}, "second");
  auto& coder = b.Classic("LabelEncoder", "a");
  SetAttribute(coder, "keys_strings", Words{"key"});
  SetAttribute(coder, "values_strings", Words{"value"});
  const auto model = Import(b);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const char* text : {"initial", "constant", "key", "value", "_Unused"}) {
    EXPECT_TRUE(model->vocabulary->Find(text).has_value()) << text;
  }
  EXPECT_FALSE(model->vocabulary->Find("coder").has_value()) << "the name of a node";
}

// The body of a function decides the kinds of a call's attributes.
TEST(TextsTest, TheVocabularyHasTheTextsThatAreHandedToFunctions) {
  TextModel b;
  auto* import = b.model().add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
  onnx::FunctionProto& function = *b.model().add_functions();
  function.set_name("Is");
  function.set_domain("mine");
  function.add_input("given");
  function.add_output("is");
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("wanted");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value_string");
  value.set_ref_attr_name("what");
  value.set_type(onnx::AttributeProto::STRING);
  onnx::NodeProto& equal = *function.add_node();
  equal.set_op_type("Equal");
  equal.add_input("given");
  equal.add_input("wanted");
  equal.add_output("is");
  onnx::AttributeProto otherwise;
  otherwise.set_name("what");
  otherwise.set_type(onnx::AttributeProto::STRING);
  otherwise.set_s("default");
  function.GetReflection()->MutableUnknownFields(&function)->AddLengthDelimited(
      11, otherwise.SerializeAsString());
  SetAttribute(b.Node("Is", {"a"}, {"y"}, "first", "mine"), "what", std::string("handed"));
  b.Node("Is", {"a"}, {"z"}, "second", "mine");
  const auto model = Import(b);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const char* text : {"handed", "default"}) {
    EXPECT_TRUE(model->vocabulary->Find(text).has_value()) << text;
  }
}

TEST(TextsTest, LabelsOfClassifiersAreText) {
  TextModel b;
  b.Output("scores");
  auto& node = b.Node("LinearClassifier", {"x"}, {"y", "scores"}, "line", kClassicDomain);
  SetAttribute(node, "coefficients", Floats{1, 2, 3, 4});
  SetAttribute(node, "intercepts", Floats{1, 2});
  SetAttribute(node, "classlabels_strings", Words{"cat", "dog"});
  const auto model = Import(b);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->outputs[0].text);
  EXPECT_FALSE(model->outputs[1].text);
}

TEST(TextsTest, LookUpsTurnTextIntoNumbersAndBack) {
  for (const bool into_text : {false, true}) {
    TextModel b;
    auto& coder = b.Classic("LabelEncoder", into_text ? "k" : "a");
    SetAttribute(coder, into_text ? "values_strings" : "keys_strings", Words{"one", "two"});
    SetAttribute(coder, into_text ? "keys_int64s" : "values_int64s", Ints{1, 2});
    const auto model = Import(b);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->outputs[0].text, into_text);
  }
}

TEST(TextsTest, KeysOfAnotherKindThanTheInputAreABrokenFile) {
  TextModel b;
  auto& coder = b.Classic("LabelEncoder", "k");
  SetAttribute(coder, "keys_strings", Words{"one"});
  SetAttribute(coder, "values_int64s", Ints{1});
  EXPECT_THAT(InvalidArgument(b), AllOf(HasSubstr("coder"), HasSubstr("keys are text")));
}

TEST(TextsTest, WhatComputesWithTextIsRefusedByNodeAndInput) {
  TextModel b;
  b.Node("Add", {"x", "a"}, {"y"}, "sum");
  EXPECT_THAT(Unimplemented(b),
              AllOf(HasSubstr("Add"), HasSubstr("sum"), HasSubstr("input 1 is text")));
}

TEST(TextsTest, PlacesAreNoNumbersThatANodeMayRead) {
  // Each of them takes integers: over texts they would compute with places.
  for (const char* op :
       {"Neg", "Abs", "ArgMax", "TopK", "ReduceMax", "Less", "NonZero", "Unique"}) {
    TextModel b;
    b.Node(op, {"a"}, {"y"}, "node");
    EXPECT_THAT(Unimplemented(b), AllOf(HasSubstr("node"), HasSubstr("text"))) << op;
  }
}

TEST(TextsTest, AMixOfTextAndNumbersIsRefusedWithBothInputs) {
  TextModel b;
  SetAttribute(b.Node("Concat", {"a", "k"}, {"y"}, "mix"), "axis", int64_t{1});
  EXPECT_THAT(Unimplemented(b),
              AllOf(HasSubstr("mix"), HasSubstr("input 0 is text"), HasSubstr("input 1 is not")));
}

TEST(TextsTest, NumbersInTextAreNotRead) {
  TextModel b;
  SetAttribute(b.Node("Cast", {"a"}, {"y"}, "cast"), "to", int64_t{onnx::TensorProto::FLOAT});
  EXPECT_THAT(Unimplemented(b), AllOf(HasSubstr("cast"), HasSubstr("reads numbers in text")));
}

TEST(TextsTest, IntegersAsTextAreLookedUpAndNotAnswered) {
  const auto cast = [](TextModel& b, const std::string& to) {
    SetAttribute(b.Node("Cast", {"k"}, {to}, "cast"), "to", int64_t{onnx::TensorProto::STRING});
  };
  TextModel looked_up;
  cast(looked_up, "t");
  auto& coder = looked_up.Classic("LabelEncoder", "t");
  SetAttribute(coder, "keys_strings", Words{"12", "-3", "012", "x"});
  SetAttribute(coder, "values_int64s", Ints{1, 2, 3, 4});
  EXPECT_THAT(Text(looked_up), AllOf(HasSubstr("12, -3"), Not(HasSubstr("refused"))));

  TextModel answered;
  cast(answered, "y");
  EXPECT_THAT(Unimplemented(answered), AllOf(HasSubstr("'y'"), HasSubstr("looked up")));

  TextModel strict;
  cast(strict, "t");
  auto& ones = strict.Classic("OneHotEncoder", "t");
  SetAttribute(ones, "cats_strings", Words{"1"});
  SetAttribute(ones, "zeros", int64_t{0});
  EXPECT_THAT(Unimplemented(strict), AllOf(HasSubstr("coder"), HasSubstr("zeros=0")));
}

TEST(TextsTest, AnOutputThatIsDeclaredTextAndIsNotIsABrokenFile) {
  TextModel b;
  b.Node("Relu", {"x"}, {"y"});
  ModelBuilder::SetType(b.graph().mutable_output(0), "y", onnx::TensorProto::STRING, {"n", "2"});
  EXPECT_THAT(InvalidArgument(b), AllOf(HasSubstr("'y'"), HasSubstr("declared text")));
}

}  // namespace
}  // namespace reprise
