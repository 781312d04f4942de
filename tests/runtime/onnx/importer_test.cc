#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ImporterTest, DimsKeepSizesSymbolsAndGetNamesWhereTheyHaveNone) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "0", "", "-1", "past + 1"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"});
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->inputs.size(), 1u);
  EXPECT_THAT(model->inputs[0].dims, ElementsAre(Dim{-1, "batch"}, Dim{0, ""}, Dim{-1, "x:2"},
                                                 Dim{-1, "x:3"}, Dim{-1, "past + 1"}));
  EXPECT_EQ(model->outputs[0].name, "y");
}

TEST(ImporterTest, WeightsAreParametersTheRestConstants) {
  ModelBuilder builder;
  builder.Input("x", {"n", "16"}).Output("y");
  std::vector<float> weights(256);
  std::iota(weights.begin(), weights.end(), 0.0f);
  builder.Floats("w", {16, 16}, weights);
  builder.Floats("b", {16}, std::vector<float>(16, 2.0f));
  builder.Floats("low", {}, {-2.0f});
  builder.Node("Gemm", {"x", "w", "b"}, {"product"});
  builder.Node("Clip", {"product", "low"}, {"y"});
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->parameters.size(), 2u);
  EXPECT_THAT(model->parameters[0].Aligned().span<float>(), ::testing::ElementsAreArray(weights));
  EXPECT_THAT(model->parameters[1].Aligned().span<float>(), ::testing::Each(2.0f));
  const ValueId low = model->graph.FindValue("low");
  ASSERT_NE(low, kNone);
  EXPECT_EQ(model->graph.ConstantOf(low)->span<float>()[0], -2.0f);
}

TEST(ImporterTest, TypedFieldsHoldTheSameValuesAsRawBytes) {
  ModelBuilder builder;
  builder.Input("x", {"2"}, onnx::TensorProto::FLOAT16).Output("y");
  auto* half = builder.graph().add_initializer();
  half->set_name("h");
  half->set_data_type(onnx::TensorProto::FLOAT16);
  half->add_dims(2);
  half->add_int32_data(0x3C00);
  half->add_int32_data(0xC000);
  builder.Node("Max", {"x", "h"}, {"y"});
  const auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->graph.ConstantOf(model->graph.FindValue("h"))->ToDoubles(),
              ElementsAre(1, -2));
}

TEST(ImporterTest, ListedInitializersAreOptionalInputsFromFormatVersionFour) {
  ModelBuilder builder = ReluModel();
  builder.graph().mutable_node(0)->set_op_type("Add");
  builder.graph().mutable_node(0)->add_input("b");
  builder.Floats("b", {3}, {1, 2, 3});
  builder.Input("b", {"3"});
  auto model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->inputs.size(), 2u);
  EXPECT_TRUE(model->inputs[1].optional);
  EXPECT_TRUE(model->graph.value(model->graph.FindValue("b")).overridable);

  builder.model().set_ir_version(3);
  model = Import(builder);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->inputs.size(), 1u);
  EXPECT_FALSE(model->graph.value(model->graph.FindValue("b")).overridable);
}

TEST(ImporterTest, NodesInAnyOrderAreSorted) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("z");
  builder.Node("Neg", {"y"}, {"z"});
  builder.Node("Abs", {"x"}, {"y"});
  EXPECT_EQ(Text(builder), R"(graph {
  input %x: f32[2]
  %y: ? = Abs(%x) @n
  %z: ? = Neg(%y) @n
  output %z
}
)");
}

TEST(ImporterTest, ConstantNodesOfEveryFormBecomeConstants) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("y");
  SetAttribute(builder.Node("Constant", {}, {"a"}), "value_float", 2.0f);
  SetAttribute(builder.Node("Constant", {}, {"i"}), "value_ints", std::vector<int64_t>{2});
  builder.Node("Reshape", {"x", "i"}, {"r"});
  builder.Node("Mul", {"r", "a"}, {"y"});
  const std::string text = Text(builder);
  EXPECT_THAT(text, HasSubstr("const %a: f32[]"));
  EXPECT_THAT(text, HasSubstr("const %i: i64[1] = {2}"));
}

TEST(ImporterTest, TrailingLeftOutOperandsVanish) {
  ModelBuilder builder;
  builder.Input("x", {"2"}).Output("y");
  builder.Node("Clip", {"x", "", ""}, {"y"});
  EXPECT_THAT(Text(builder), HasSubstr("= Clip(%x) @n"));
}

TEST(ImporterTest, AFirstResultThatIsLeftOutIsThereWhereAnotherIsRead) {
  ModelBuilder builder;
  builder.Input("x", {"2", "3"}).Output("mean");
  builder.Initializer<float>("scale", onnx::TensorProto::FLOAT, {3}, {1, 1, 1});
  builder.Node("LayerNormalization", {"x", "scale"}, {"", "mean"});
  EXPECT_THAT(Text(builder), testing::ContainsRegex("%[^:]*: \\?, %mean: \\? = LayerNorm"));
}

// y = c ? Relu(x) + k : (c ? h : Exp(x)), where h = Neg(x) is outside.
ModelBuilder BranchModel() {
  ModelBuilder builder;
  builder.Input("c", {}, onnx::TensorProto::BOOL).Input("x", {"n"}).Output("y");
  builder.Node("Neg", {"x"}, {"h"}, "neg");
  auto& node = builder.Node("If", {"c"}, {"y"}, "branch");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  auto* k = first.add_initializer();
  k->set_name("k");
  k->set_data_type(onnx::TensorProto::FLOAT);
  k->add_float_data(2);
  AddBranchNode(first, "Relu", {"x"}, "t");
  AddBranchNode(first, "Add", {"t", "k"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  auto& inner = AddBranchNode(second, "If", {"c"}, "t");
  AddBranch(inner, "then_branch").add_output()->set_name("h");
  onnx::GraphProto& last = AddBranch(inner, "else_branch");
  AddBranchNode(last, "Exp", {"x"}, "e");
  last.add_output()->set_name("e");
  second.add_output()->set_name("t");
  return builder;
}

TEST(ImporterTest, BranchesLieBesideTheirIfAndSeeWhatIsAround) {
  const auto model = Import(BranchModel());
  ASSERT_TRUE(model.ok()) << model.status();
  const Graph& graph = model->graph;
  std::vector<std::string> ops;
  std::vector<std::vector<std::string>> operands;  // each If's
  for (const NodeId id : graph.NodeIds()) {
    ops.push_back(graph.node(id).op);
    if (ops.back() != "If") continue;
    operands.emplace_back();
    for (const ValueId input : graph.node(id).inputs) {
      operands.back().push_back(graph.value(input).name);
    }
  }
  EXPECT_THAT(ops, ElementsAre("Neg", "Relu", "Add", "Exp", "If", "If"));
  EXPECT_THAT(operands, ElementsAre(ElementsAre("c", "h", "branch#1/#3/e"),
                                    ElementsAre("c", "branch#0/r", "branch#1/t")));
}

TEST(ImporterTest, ABrokenBranchIsNamed) {
  ModelBuilder missing = BranchModel();
  missing.graph().mutable_node(1)->mutable_attribute()->RemoveLast();
  EXPECT_THAT(InvalidArgument(missing), HasSubstr("If 'branch': else_branch is missing"));
  ModelBuilder uneven = BranchModel();
  uneven.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->add_output()->set_name("t");
  EXPECT_THAT(InvalidArgument(uneven), HasSubstr("then_branch has 2 results, the node 1"));
  ModelBuilder unknown = BranchModel();
  unknown.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(
      0, "nobody");
  EXPECT_THAT(InvalidArgument(unknown), HasSubstr("'nobody', which nothing defines"));
}

}  // namespace
}  // namespace reprise
