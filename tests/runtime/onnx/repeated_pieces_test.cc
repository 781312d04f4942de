// Loops that repeat each piece of a tensor: what they become, and which stay loops.
#include "runtime/onnx/structure/repeated_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using testing::ElementsAre;

// The loop of repeat_interleave(x, 3, dim=1), x [4, n, 2], unless a member says otherwise.
struct RepeatLoop {
  std::string turns = "turns";      // how many turns the loop has
  std::string insert_at;            // where a piece is inserted; empty: after the others
  int64_t last = 2;                 // the last size of a piece
  std::string counts = "counts";    // how often pieces are repeated
  std::string condition = "go_on";  // whether there is a next turn
};

ModelBuilder WithLoop(const RepeatLoop& of) {
  ModelBuilder b;
  b.Input("x", {"4", "n", "2"}).Input("own", {"n"}).Input("more", {"1"}).Output("y");
  const auto ints = [&](const char* name, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& values) {
    b.Initializer<int64_t>(name, onnx::TensorProto::INT64, dims, values);
  };
  ints("at0", {}, {0}), ints("at1", {}, {1}), ints("front", {1}, {0}), ints("behind", {1}, {2});
  ints("three", {}, {3}), ints("before", {2}, {-1, 1}), ints("after", {1}, {-1});
  ints("shape", {3}, {0, -1, of.last}), ints("minus", {}, {-1});
  b.Node("Shape", {"x"}, {"sizes"});
  b.Node("Gather", {"sizes", "at1"}, {"size"});
  b.Node("Unsqueeze", {"size", "front"}, {"turns"});
  b.Node("Cast", {"more"}, {"asked"});
  SetAttribute(*b.graph().mutable_node()->rbegin(), "to", int64_t{onnx::TensorProto::INT64});
  b.Node("Cast", {"own"}, {"given"});
  SetAttribute(*b.graph().mutable_node()->rbegin(), "to", int64_t{onnx::TensorProto::INT64});
  b.Node("Cast", {"at1"}, {"go_on"});
  SetAttribute(*b.graph().mutable_node()->rbegin(), "to", int64_t{onnx::TensorProto::BOOL});
  b.Node("Cast", {"more"}, {"may_go_on"});
  SetAttribute(*b.graph().mutable_node()->rbegin(), "to", int64_t{onnx::TensorProto::BOOL});
  b.Node("Expand", {"three", "turns"}, {"counts"});
  b.Node("Shape", {of.counts}, {"many"});
  auto& ones = b.Node("ConstantOfShape", {"many"}, {"ones"});
  onnx::AttributeProto& one = *ones.add_attribute();
  one.set_name("value");
  one.set_type(onnx::AttributeProto::TENSOR);
  one.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  one.mutable_t()->add_dims(1);
  one.mutable_t()->add_int64_data(1);
  SetAttribute(b.Node("SplitToSequence", {of.counts, "ones"}, {"by_count"}), "axis", int64_t{0});
  SetAttribute(b.Node("SplitToSequence", {"x", "ones"}, {"by_piece"}), "axis", int64_t{1});
  b.Node("SequenceEmpty", {}, {"none"});
  auto& loop = b.Node("Loop", {of.turns, of.condition, "none"}, {"pieces"}, "loop");
  onnx::GraphProto& body = AddBranch(loop, "body");
  for (const char* name : {"i", "go_in", "a"}) body.add_input()->set_name(name);
  body.mutable_input(2)->mutable_type()->mutable_sequence_type()->mutable_elem_type();
  AddBranchNode(body, "SequenceAt", {"by_piece", "i"}, "piece");
  AddBranchNode(body, "SequenceAt", {"by_count", "i"}, "count");
  AddBranchNode(body, "Unsqueeze", {"piece", "behind"}, "apart");
  SetAttribute(AddBranchNode(body, "Concat", {"before", "count", "after"}, "wide"), "axis",
               int64_t{0});
  AddBranchNode(body, "Equal", {"wide", "minus"}, "keeps");
  AddBranchNode(body, "Where", {"keeps", "at1", "wide"}, "fits");
  AddBranchNode(body, "Expand", {"apart", "fits"}, "repeated");
  AddBranchNode(body, "Reshape", {"repeated", "shape"}, "joined");
  std::vector<std::string> inserted = {"a", "joined"};
  if (!of.insert_at.empty()) inserted.push_back(of.insert_at);
  AddBranchNode(body, "SequenceInsert", inserted, "longer");
  AddBranchNode(body, "Cast", {of.condition}, "go_out");
  SetAttribute(*body.mutable_node()->rbegin(), "to", int64_t{onnx::TensorProto::BOOL});
  for (const char* name : {"go_out", "longer"}) body.add_output()->set_name(name);
  SetAttribute(b.Node("ConcatFromSequence", {"pieces"}, {"y"}), "axis", int64_t{1});
  return b;
}

std::vector<std::string> OpsOf(const ModelBuilder& builder) {
  const absl::StatusOr<ImportedModel> model = Import(builder);
  if (!model.ok()) return {std::string(model.status().message())};
  std::vector<std::string> ops;
  ValueId value = model->graph.outputs()[0];
  while (model->graph.value(value).producer != kNone) {
    const Node& node = model->graph.node(model->graph.value(value).producer);
    ops.push_back(node.op);
    if (node.inputs.empty()) break;
    value = node.inputs[0];
  }
  return ops;
}

TEST(RepeatedPiecesTest, ALoopOverPiecesIsOneExpand) {
  EXPECT_THAT(OpsOf(WithLoop({})), ElementsAre("Reshape", "Expand", "Unsqueeze"));
  const std::string text = Text(WithLoop({}));
  EXPECT_THAT(text, testing::HasSubstr("{1, 1, 3, 1}"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("Loop")));
}

TEST(RepeatedPiecesTest, OtherLoopsStay) {
  const auto stays = [](const RepeatLoop& of) {
    const std::vector<std::string> ops = OpsOf(WithLoop(of));
    return ops.empty() || ops.size() == 1 || ops[0] != "Reshape" || ops[1] != "Expand";
  };
  EXPECT_TRUE(stays({.turns = "asked"}));
  EXPECT_TRUE(stays({.insert_at = "at0"}));
  EXPECT_TRUE(stays({.last = 0}));
  EXPECT_TRUE(stays({.counts = "given"}));
  EXPECT_TRUE(stays({.condition = "may_go_on"}));
}

}  // namespace
}  // namespace reprise
