// Names of a file that look like those that are made while it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NamesTest, ValuesMayBeCalledAsWhatASubgraphIsInlinedTo) {
  ModelBuilder b;
  // The first If of the name 'choice' defines 'choice#0/r' and 'choice#1/r'.
  b.Input("x", {"2"}).Input("c", {}, onnx::TensorProto::BOOL).Output("choice#0/r").Output("y");
  b.Node("Abs", {"x"}, {"choice#0/r"}, "choice##1/");
  AddChoice(b, "c");
  const std::string text = Text(b);
  EXPECT_THAT(text, AllOf(HasSubstr("Abs(%x)"), HasSubstr("Relu(%x)"), HasSubstr("Neg(%x)"),
                          HasSubstr("output %\"choice#0/r\"")));
}

TEST(NamesTest, ValuesMayBeCalledAsAResultThatWasLeftOut) {
  ModelBuilder b;
  b.Input("x", {"4"}).Output("places (first result)").Output("places");
  b.Floats("k_", {}, {0});
  b.Initializer<int64_t>("k", onnx::TensorProto::INT64, {1}, {2});
  b.Node("TopK", {"x", "k"}, {"", "places"});
  b.Node("Neg", {"x"}, {"places (first result)"});
  auto model = Import(b);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->graph.outputs().size(), 2u);
  const NodeId producer = model->graph.value(model->graph.outputs()[0]).producer;
  EXPECT_EQ(model->graph.node(producer).op, "Neg");
}

// Op 'microsoft.Gelu' of the domain 'com' is not Gelu of com.microsoft.
TEST(NamesTest, ADomainEndsWhereTheFileSaysSo) {
  ModelBuilder b;
  b.Input("x", {"4"}).Output("y");
  b.Node("microsoft.Gelu", {"x"}, {"y"}, "n", "com");
  EXPECT_THAT(Unimplemented(b), AllOf(HasSubstr("microsoft.Gelu"), HasSubstr("com")));
  ModelBuilder plain;
  plain.Input("x", {"4"}).Output("y");
  plain.Node("com.microsoft.Gelu", {"x"}, {"y"}, "n");
  EXPECT_THAT(Unimplemented(plain), HasSubstr("com.microsoft.Gelu"));
}

// Ours are no ops of a file; a function of the file may have such a name.
TEST(NamesTest, TheDomainRepriseIsLikeAnyOther) {
  ModelBuilder b;
  b.Input("x", {"4"}).Output("y");
  b.Node("LoopStep", {}, {"y", "z"}, "n", "reprise");
  EXPECT_THAT(Unimplemented(b), HasSubstr("LoopStep"));

  ModelBuilder function;
  function.Input("x", {"4"}).Output("y");
  auto* import = function.model().add_opset_import();
  import->set_domain("reprise");
  import->set_version(1);
  onnx::FunctionProto& linear = *function.model().add_functions();
  linear.set_domain("reprise");
  linear.set_name("Linear");
  linear.add_input("a");
  linear.add_output("b");
  auto* own = linear.add_opset_import();
  own->set_domain("");
  own->set_version(17);
  auto* node = linear.add_node();
  node->set_op_type("Neg");
  node->add_input("a");
  node->add_output("b");
  function.Node("Linear", {"x"}, {"y"}, "n", "reprise");
  EXPECT_THAT(Text(function), HasSubstr("Neg(%x)"));
}

}  // namespace
}  // namespace reprise
