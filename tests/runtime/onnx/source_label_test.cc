// Nodes that an op of the file was rewritten into are named after the file's node and op.
#include <gmock/gmock.h>

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the label of every node.
std::vector<std::string> Labels(const ModelBuilder& builder) {
  const auto model = Import(builder);
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<std::string> labels;
  if (!model.ok()) return labels;
  for (const NodeId id : model->graph.NodeIds()) {
    labels.push_back(NodeLabel(model->graph.node(id)));
  }
  return labels;
}

// x [2, 8] times weights of 4 bits, two blocks of 16 a column; `packed` is the number of bytes of
// each block.
ModelBuilder BlockProduct(const std::string& name, int64_t packed) {
  ModelBuilder b;
  b.model().add_opset_import()->set_domain(kMicrosoft);
  b.model().mutable_opset_import(1)->set_version(1);
  b.Input("x", {"2", "32"}).Output("y");
  const auto bytes = static_cast<size_t>(3 * 2 * packed);
  b.Initializer<uint8_t>("w", onnx::TensorProto::UINT8, {3, 2, packed},
                         std::vector<uint8_t>(bytes, 0x21));
  b.Floats("s", {6}, std::vector<float>(6, 1));
  auto& node = b.Node("MatMulNBits", {"x", "w", "s"}, {"y"}, name, kMicrosoft);
  for (const auto& [key, value] : {std::pair{"K", 32}, {"N", 3}, {"bits", 4}, {"block_size", 16}}) {
    SetAttribute(node, key, int64_t{value});
  }
  return b;
}

TEST(SourceLabelTest, StepsGoByTheNodeOfTheFile) {
  const std::vector<std::string> labels = Labels(BlockProduct("fc", 8));
  EXPECT_GT(labels.size(), 2u);
  EXPECT_THAT(labels, Each(StartsWith("com.microsoft.MatMulNBits 'fc', step ")));
}

TEST(SourceLabelTest, StepsOfANodeWithoutANameGoByWhatItMakes) {
  EXPECT_THAT(Labels(BlockProduct("", 8)),
              Each(StartsWith("com.microsoft.MatMulNBits 'y', step ")));
}

TEST(SourceLabelTest, ANodeThatStaysAsItIsHasNoStep) {
  ModelBuilder b;
  b.Input("x", {"2"}).Output("y");
  b.Node("Neg", {"x"}, {"a"}, "minus");
  b.Node("Abs", {"a"}, {"y"}, "");
  EXPECT_THAT(Labels(b), testing::ElementsAre("Neg 'minus'", "Abs"));
}

TEST(SourceLabelTest, AnOpThatBecameAnotherSaysBoth) {
  ModelBuilder b(10);
  b.Input("x", {"2", "3"}).Input("i", {"1", "3"}, onnx::TensorProto::INT64).Output("y");
  b.Input("u", {"1", "3"});
  b.Node("Scatter", {"x", "i", "u"}, {"y"}, "put");
  EXPECT_THAT(Labels(b), testing::ElementsAre("Scatter 'put', step ScatterElements"));
}

TEST(SourceLabelTest, AScanAndWhatItIsTakenApartIntoGoByIt) {
  ModelBuilder b;
  b.Input("x", {"n", "3"}).Output("y");
  auto& node = b.Node("Scan", {"x"}, {"y"}, "walk");
  onnx::GraphProto& body = AddBranch(node, "body");
  body.add_input()->set_name("e");
  AddBranchNode(body, "Neg", {"e"}, "turned");
  body.add_output()->set_name("turned");
  SetAttribute(node, "num_scan_inputs", int64_t{1});
  EXPECT_THAT(Labels(b), testing::UnorderedElementsAre(
                             StartsWith("Scan 'walk', step "), StartsWith("Scan 'walk', step "),
                             StartsWith("Scan 'walk', step "), StartsWith("Scan 'walk', step "),
                             "Scan 'walk', step Loop", StartsWith("Neg '")));
}

// The error of a shape rule after the rewrite.
TEST(SourceLabelTest, ErrorsOfStepsNameTheNodeOfTheFile) {
  auto model = Import(BlockProduct("fc", 5));  // A block of 16 takes 8 bytes.
  ASSERT_TRUE(model.ok()) << model.status();
  absl::Status status;
  for (const NodeId id : model->graph.NodeIds()) {
    if (status.ok()) status = InferNode(model->graph, id);
  }
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("com.microsoft.MatMulNBits 'fc', step reprise.DequantizeBits("),
                    HasSubstr("u8[3, 2, 5]")));
}

}  // namespace
}  // namespace reprise
