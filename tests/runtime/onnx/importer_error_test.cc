#include <gmock/gmock.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

TEST(ImporterErrorTest, EveryUnknownOpIsNamedAtOnce) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("z");
  builder.Node("Frobnicate", {"x"}, {"y"}, "first");
  builder.Node("StringNormalizer", {"y"}, {"z"}, "second");
  const std::string message = Unimplemented(builder);
  EXPECT_EQ(message,
            "op 'Frobnicate' (domain 'ai.onnx', version 17, node 'first', dtypes (f32)): is not "
            "supported; op 'StringNormalizer' (domain 'ai.onnx', version 17, node 'second', dtypes "
            "(?)): is "
            "not supported");
}

TEST(ImporterErrorTest, ReasonsOfEveryKindAreToldTogether) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Input("s", {"2"}, onnx::TensorProto::COMPLEX64).Output("z");
  builder.Floats("w", {4}, {1, 2, 3});
  builder.Node("Relu", {"x", "w"}, {"y"}, "arity");
  builder.Node("Frobnicate", {"y", "s"}, {"z"}, "", "com.example");
  const std::string message = InvalidArgument(builder);
  EXPECT_THAT(message, HasSubstr("initializer 'w': has 12 bytes"));
  EXPECT_THAT(message, HasSubstr("input 's': dtype complex64"));
  EXPECT_THAT(message, HasSubstr("node 'arity', dtypes (f32, ?)): has 2 inputs"));
  EXPECT_THAT(message, HasSubstr("op 'Frobnicate' (domain 'com.example', version ?, node '' -> "
                                 "'z', dtypes (?, ?)): is not supported"));
}

TEST(ImporterErrorTest, InternalOpsCannotBeNamedByAModel) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->set_op_type("Linear");
  builder.graph().mutable_node(0)->set_domain("reprise");
  EXPECT_THAT(Unimplemented(builder), HasSubstr("domain 'reprise'"));
}

TEST(ImporterErrorTest, UnsupportedDtypesAreNamed) {
  ModelBuilder builder;
  builder.Input("x", {"2"}, onnx::TensorProto::COMPLEX64).Output("y");
  builder.Node("Identity", {"x"}, {"y"});
  EXPECT_THAT(Unimplemented(builder), HasSubstr("input 'x': dtype complex64"));
}

TEST(ImporterErrorTest, CyclicGraphIsNamed) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("y");
  builder.Node("Add", {"x", "b"}, {"a"}, "one");
  builder.Node("Relu", {"a"}, {"b"}, "two");
  builder.Node("Relu", {"a"}, {"y"}, "three");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("cyclic: node Add 'one'"));
}

TEST(ImporterErrorTest, DanglingInputNamesNodeAndValue) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->set_input(0, "nowhere");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("Relu 'relu' uses value 'nowhere'"));
}

TEST(ImporterErrorTest, DanglingOutputIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.Output("nowhere");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("output 'nowhere'"));
}

TEST(ImporterErrorTest, ValueDefinedTwiceIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.Node("Neg", {"x"}, {"y"}, "again");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("value 'y' is defined twice"));
  ModelBuilder inputs;
  inputs.Input("x", {"2"}).Input("x", {"2"}).Output("y");
  inputs.Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(InvalidArgument(inputs), HasSubstr("value 'x' is defined twice"));
}

TEST(ImporterErrorTest, MissingOpsetImportIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.model().clear_opset_import();
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("imports no opset"));
}

TEST(ImporterErrorTest, NewerOpsetIsRefused) {
  ModelBuilder builder = ReluModel();
  builder.model().mutable_opset_import(0)->set_version(28);
  EXPECT_TRUE(Import(builder).ok());
  builder.model().mutable_opset_import(0)->set_version(29);
  EXPECT_THAT(Unimplemented(builder), HasSubstr("opset 29 is newer than 28"));
}

TEST(ImporterErrorTest, WrongByteCountOfAnInitializerIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.Floats("w", {4}, {1, 2, 3});
  EXPECT_THAT(InvalidArgument(builder),
              HasSubstr("initializer 'w': has 12 bytes of data, expected 16"));
}

TEST(ImporterErrorTest, NegativeAndOverflowingDimsAreNamed) {
  ModelBuilder negative = ReluModel();
  negative.Floats("w", {-1, 4}, {1});
  EXPECT_THAT(InvalidArgument(negative), HasSubstr("initializer 'w': the dims [-1, 4]"));
  ModelBuilder huge = ReluModel();
  huge.Floats("w", {INT64_MAX, INT64_MAX}, {1});
  EXPECT_THAT(InvalidArgument(huge), HasSubstr("initializer 'w': the dims"));
}

TEST(ImporterErrorTest, WrongArityIsNamed) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->add_input("x");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("has 2 inputs, takes 1 to 1"));
}

TEST(ImporterErrorTest, FunctionThatCallsItselfIsRefused) {
  ModelBuilder builder = ReluModel();
  auto* function = builder.model().add_functions();
  function->set_name("Again");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  auto* node = function->add_node();
  node->set_op_type("Again");
  node->set_domain("mine");
  node->add_input("a");
  node->add_output("b");
  builder.graph().mutable_node(0)->set_op_type("Again");
  builder.graph().mutable_node(0)->set_domain("mine");
  EXPECT_THAT(InvalidArgument(builder), HasSubstr("function 'Again' calls itself"));
}

}  // namespace
}  // namespace reprise
