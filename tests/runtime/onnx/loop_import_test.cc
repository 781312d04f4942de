// Loop and Scan in files: their flattened forms, and files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/ops/control/loop.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// y, all = Loop(count, , x): each step negates the carried value, and scans it.
struct LoopModel {
  LoopModel() {
    b.Input("x", {"n"}).Output("y").Output("all");
    b.Initializer<int64_t>("count", onnx::TensorProto::INT64, {}, {3});
    node = &b.Node("Loop", {"count", "", "x"}, {"y", "all"}, "turn");
    body = &AddBranch(*node, "body");
    for (const char* name : {"i", "go_in", "a"}) body->add_input()->set_name(name);
    AddBranchNode(*body, "Neg", {"a"}, "turned");
    AddBranchNode(*body, "Identity", {"go_in"}, "go_out");
    for (const char* name : {"go_out", "turned", "turned"}) body->add_output()->set_name(name);
  }
  std::string Error() const { return std::string(ImportOnnxBytes(b.Bytes()).status().message()); }

  ModelBuilder b;
  onnx::NodeProto* node;
  onnx::GraphProto* body;
};

TEST(LoopImportTest, TheBodyLiesBesideTheLoop) {
  const auto model = ImportOnnxBytes(LoopModel().b.Bytes());
  ASSERT_TRUE(model.ok()) << model.status();
  const Graph& graph = model->graph;
  const Node* loop = graph.ProducerIf(graph.outputs()[0], "Loop");
  ASSERT_NE(loop, nullptr);
  const LoopParts parts(*loop);
  EXPECT_EQ(parts.carried, 1u);
  EXPECT_EQ(parts.scanned, 1u);
  const NodeId step = StepOf(graph, *loop);
  ASSERT_NE(step, kNone);
  const Node* turned = graph.ProducerIf(BodyResults(*loop)[1], "Neg");
  ASSERT_NE(turned, nullptr);
  EXPECT_EQ(turned->inputs[0], graph.node(step).outputs[LoopParts::kStepFirstCarried]);
}

TEST(LoopImportTest, ABodyThatDoesNotFitTheNodeIsRefusedByName) {
  LoopModel more;
  more.node->add_input("x");
  EXPECT_THAT(more.Error(), HasSubstr("Loop 'turn': body takes 3 values, the node gives it 4"));
  LoopModel fewer;
  fewer.body->mutable_output()->RemoveLast();
  EXPECT_THAT(fewer.Error(), HasSubstr("Loop 'turn': body has 2 results, the node asks for 3"));
  LoopModel none;
  none.node->clear_attribute();
  EXPECT_THAT(none.Error(), HasSubstr("Loop 'turn': body is missing"));
}

TEST(LoopImportTest, NoFileNamesTheStepOfALoop) {
  ModelBuilder b;
  b.Output("y");
  b.Node("LoopStep", {}, {"y", "z"}).set_domain("reprise");
  EXPECT_THAT(std::string(ImportOnnxBytes(b.Bytes()).status().message()),
              HasSubstr("'LoopStep' (domain 'reprise'"));
}

TEST(LoopImportTest, AScanThatDoesNotFitIsRefusedByName) {
  ModelBuilder b;
  b.Input("x", {"n"}).Output("y");
  auto& node = b.Node("Scan", {"x"}, {"y"}, "walk");
  onnx::GraphProto& body = AddBranch(node, "body");
  body.add_input()->set_name("e");
  AddBranchNode(body, "Neg", {"e"}, "turned");
  body.add_output()->set_name("turned");
  SetAttribute(node, "num_scan_inputs", int64_t{2});
  const auto error = [&] { return std::string(ImportOnnxBytes(b.Bytes()).status().message()); };
  EXPECT_THAT(error(), HasSubstr("Scan 'walk' scans 2 of its 1 inputs"));
  node.mutable_attribute(1)->set_i(1);
  EXPECT_TRUE(ImportOnnxBytes(b.Bytes()).ok()) << error();
  SetAttribute(node, "scan_input_directions", std::vector<int64_t>{0, 1});
  EXPECT_THAT(error(), HasSubstr("attribute 'scan_input_directions' has 2 entries for 1 values"));
  node.mutable_attribute()->DeleteSubrange(2, 1);
  SetAttribute(node, "scan_input_directions", std::vector<int64_t>{7});
  EXPECT_THAT(error(), HasSubstr("'scan_input_directions' holds 7, a direction is 0 or 1"));
}

TEST(LoopImportTest, OperandsThatAreLeftOutAreRefusedByName) {
  LoopModel loop;
  loop.node->set_input(2, "");
  EXPECT_THAT(loop.Error(), HasSubstr("Loop 'turn': carried value 0 is left out"));

  ModelBuilder b;
  b.Input("x", {"n", "4"}).Floats("first", {4}, {0, 0, 0, 0});
  b.Output("last").Output("all");
  auto& scan = b.Node("Scan", {"first", "x"}, {"last", "all"}, "walk");
  onnx::GraphProto& body = AddBranch(scan, "body");
  for (const char* name : {"a", "e"}) body.add_input()->set_name(name);
  AddBranchNode(body, "Add", {"a", "e"}, "sum");
  for (int i = 0; i < 2; ++i) body.add_output()->set_name("sum");
  SetAttribute(scan, "num_scan_inputs", int64_t{1});
  const auto error = [&] { return std::string(ImportOnnxBytes(b.Bytes()).status().message()); };
  EXPECT_EQ(error(), "");
  scan.set_input(0, "");
  EXPECT_THAT(error(), HasSubstr("Scan 'walk': operand 0 is left out"));
  scan.set_input(0, "first");
  scan.set_input(1, "");
  EXPECT_THAT(error(), HasSubstr("Scan 'walk': operand 1 is left out"));
}

TEST(LoopImportTest, AnIfWithoutItsConditionIsRefusedByName) {
  ModelBuilder b;
  b.Input("x", {"n"}).Output("y");
  AddChoice(b, "");
  EXPECT_THAT(std::string(ImportOnnxBytes(b.Bytes()).status().message()),
              HasSubstr("If 'choice': operand 0 is left out"));
}

// The Loop above, with dtypes declared for its body.
struct TypedLoop : LoopModel {
  TypedLoop() {
    Declare(body->mutable_input(0), onnx::TensorProto::INT64, {});
    Declare(body->mutable_input(1), onnx::TensorProto::BOOL, {});
    Declare(body->mutable_input(2), onnx::TensorProto::FLOAT, {"n"});
    Declare(body->mutable_output(0), onnx::TensorProto::BOOL, {});
    Declare(body->mutable_output(1), onnx::TensorProto::FLOAT, {"n"});
    Declare(body->mutable_output(2), onnx::TensorProto::FLOAT, {"n"});
  }
  static void Declare(onnx::ValueInfoProto* info, int type, const std::vector<std::string>& dims) {
    ModelBuilder::SetType(info, info->name(), type, dims);
  }
};

TEST(LoopImportTest, DeclarationsThatFitAreTaken) { EXPECT_EQ(TypedLoop().Error(), ""); }

TEST(LoopImportTest, DeclaredDtypesThatDoNotFitAreRefusedWithBoth) {
  TypedLoop carried;
  carried.Declare(carried.body->mutable_input(2), onnx::TensorProto::INT64, {"n"});
  EXPECT_EQ(carried.Error(), "Loop 'turn': carried value 0 is f32, the body declares i64");
  TypedLoop scanned;
  scanned.Declare(scanned.body->mutable_output(2), onnx::TensorProto::DOUBLE, {"n"});
  EXPECT_EQ(scanned.Error(), "Loop 'turn': scanned result 0 is f32, the body declares f64");
}

TEST(LoopImportTest, ABodyThatChangesADtypeIsRefusedWithBoth) {
  TypedLoop loop;
  onnx::NodeProto& cast = *loop.body->mutable_node(0);
  cast.set_op_type("Cast");
  SetAttribute(cast, "to", int64_t{onnx::TensorProto::INT32});
  EXPECT_EQ(loop.Error(), "Loop 'turn': carried value 0 is f32, the body makes it i32");
  TypedLoop condition;
  condition.body->mutable_node(1)->set_input(0, "a");
  EXPECT_EQ(condition.Error(), "Loop 'turn': the condition of the body is f32, it must be bool");
}

TEST(LoopImportTest, ATripCountOfFloatsIsRefused) {
  LoopModel loop;
  loop.node->set_input(0, "x");
  EXPECT_EQ(loop.Error(), "Loop 'turn': the trip count is f32, it must be i64");
}

TEST(LoopImportTest, AxesOfAScanThatItsValuesDoNotHaveAreRefused) {
  const auto error = [](const char* name, int64_t axis, bool declared) {
    ModelBuilder b;
    b.Input("x", {"n", "3"}).Output("y");
    auto& node = b.Node("Scan", {"x"}, {"y"}, "walk");
    onnx::GraphProto& body = AddBranch(node, "body");
    body.add_input()->set_name("e");
    AddBranchNode(body, "Neg", {"e"}, "turned");
    body.add_output()->set_name("turned");
    if (declared) {
      ModelBuilder::SetType(body.mutable_output(0), "turned", onnx::TensorProto::FLOAT, {"3"});
    }
    SetAttribute(node, "num_scan_inputs", int64_t{1});
    SetAttribute(node, name, std::vector<int64_t>{axis});
    return std::string(ImportOnnxBytes(b.Bytes()).status().message());
  };
  EXPECT_EQ(error("scan_input_axes", 1, true), "");
  EXPECT_EQ(error("scan_input_axes", -2, true), "");
  EXPECT_EQ(error("scan_input_axes", 2, true), "Scan 'walk': axis 2 of 'x', which has 2 dims");
  EXPECT_EQ(error("scan_output_axes", 1, true), "");
  EXPECT_EQ(error("scan_output_axes", 2, true),
            "Scan 'walk': axis 2 of scanned result 0, which has 2 dims");
  EXPECT_EQ(error("scan_output_axes", 2, false), "") << "not known before there is data";
}

}  // namespace
}  // namespace reprise
