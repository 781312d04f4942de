// Models that are cut at an If whose condition is data: each request takes its own branch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "runtime/engine/model/tail.h"
#include "tests/runtime/engine/tail/tail_fixture.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Proto = onnx::TensorProto;
class TailChoiceTest : public TailTest {};

// y = max(x) > 0 ? Relu(x) : Reshape(x, [2, -1]) plus a part of x that only fits sometimes.
ModelBuilder Choice() {
  ModelBuilder b;
  b.Input("x", {"batch", "n"});
  b.Floats("zero", {}, {0});
  b.Initializer<int64_t>("two_rows", Proto::INT64, {2}, {2, -1});
  b.Node("Neg", {"x"}, {"negative"});
  SetAttribute(b.Node("ReduceMax", {"x"}, {"largest"}), "keepdims", int64_t{0});
  b.Node("Greater", {"largest", "zero"}, {"any"});
  auto& node = b.Node("If", {"any"}, {"y"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  AddBranchNode(first, "Relu", {"x"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "Reshape", {"negative", "two_rows"}, "r");
  second.add_output()->set_name("r");
  AddOutput(b, "y", Proto::FLOAT, {"rows", "columns"});
  return b;
}

TEST_F(TailChoiceTest, AConditionOverDataChoosesTheBranchOfEachRequest) {
  Load(Choice());
  const std::vector<float> mixed = {-1, 2, -3}, negative = {-1, -2, -3, -4};
  const Response first = Run({{{1, 3}, mixed.data()}});
  EXPECT_THAT(Elements<float>(first), ElementsAre(0, 2, 0));
  const Response second = Run({{{1, 4}, negative.data()}});
  EXPECT_THAT(Elements<float>(second), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(second.outputs[0].shape, Shape({2, 2}));
  // The branch that does not fit is an error only where it is taken.
  const Response odd = Run({{{1, 3}, negative.data()}});
  EXPECT_EQ(odd.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(odd.status.message()), HasSubstr("second branch of If 'choice'"));
}

// y = max(x) > 0 ? (min(x) > 0 ? x : Neg(x)) : NonZero(x), as floats; no file declares y.
ModelBuilder Nested() {
  ModelBuilder b;
  b.Input("x", {"n"}).Output("y").Output("place");
  b.Floats("zero", {}, {0});
  b.Node("Neg", {"x"}, {"negative"});
  for (const auto& [op, result, compared] :
       {std::tuple{"ReduceMax", "largest", "any"}, std::tuple{"ReduceMin", "smallest", "all"}}) {
    SetAttribute(b.Node(op, {"x"}, {result}), "keepdims", int64_t{0});
    b.Node("Greater", {result, "zero"}, {compared});
  }
  const auto result_in = [](onnx::GraphProto& branch, const std::string& name) {
    branch.add_output()->set_name(name);
  };
  auto& node = b.Node("If", {"any"}, {"y", "place"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  auto& inner = AddBranchNode(first, "If", {"all"}, "chosen");
  onnx::GraphProto& inner_first = AddBranch(inner, "then_branch");
  AddBranchNode(inner_first, "Identity", {"x"}, "a");
  result_in(inner_first, "a");
  onnx::GraphProto& inner_second = AddBranch(inner, "else_branch");
  result_in(inner_second, "negative");
  AddBranchNode(first, "NonZero", {"chosen"}, "where");
  result_in(first, "chosen");
  result_in(first, "where");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "NonZero", {"x"}, "there");
  SetAttribute(AddBranchNode(second, "Cast", {"there"}, "places"), "to", int64_t{Proto::FLOAT});
  result_in(second, "places");
  result_in(second, "there");
  return b;
}

TEST_F(TailChoiceTest, OutputsBehindACutHaveTheDtypeThatFollowsFromTheNodes) {
  Load(Nested());
  ASSERT_NE(model_->tail(), nullptr);
  ASSERT_THAT(model_->outputs(), SizeIs(2));
  EXPECT_EQ(model_->outputs()[0].dtype, DType::kFloat32);
  EXPECT_EQ(model_->outputs()[1].dtype, DType::kInt64);
  const std::vector<float> above = {1, 2}, mixed = {-1, 2, 0}, below = {-1, 0, -3};
  EXPECT_THAT(Elements<float>(Run({{{2}, above.data()}})), ElementsAre(1, 2));
  const Response turned = Run({{{3}, mixed.data()}});
  EXPECT_THAT(Elements<float>(turned), ElementsAre(1, -2, 0));
  EXPECT_THAT(Elements<int64_t>(turned, 1), ElementsAre(0, 1));
  const Response places = Run({{{3}, below.data()}});
  EXPECT_THAT(Elements<float>(places), ElementsAre(0, 2));
  EXPECT_EQ(places.outputs[0].shape, Shape({1, 2}));
}

TEST_F(TailChoiceTest, BranchesThatDifferInDtypeAreRefusedByName) {
  ModelBuilder b;
  b.Input("x", {"n"}).Output("y");
  b.Floats("zero", {}, {0});
  SetAttribute(b.Node("ReduceMax", {"x"}, {"largest"}), "keepdims", int64_t{0});
  b.Node("Greater", {"largest", "zero"}, {"any"});
  auto& node = b.Node("If", {"any"}, {"y"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  AddBranchNode(first, "Neg", {"x"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "NonZero", {"x"}, "r");
  second.add_output()->set_name("r");
  const TempFolder folder;
  const auto loaded =
      fixture_.engine.Load({.id = {"m", 1}, .path = folder.Write("model.onnx", b.Bytes())});
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("output 'y'"));
}

TEST_F(TailChoiceTest, AMeasureThatAConditionComparesIsDataAndNoPartOfAKey) {
  ModelBuilder b;
  b.Input("x", {"batch", "n"}).Input("threshold", {"1"});
  b.Floats("half", {1}, {0.5f});
  b.Node("Greater", {"threshold", "half"}, {"any"});
  AddChoice(b, "any");
  AddOutput(b, "y", Proto::FLOAT, {"batch", "n"});
  Load(b);
  EXPECT_FALSE(model_->has_shape_inputs());
  const std::vector<float> x = {-1, 2};
  const float low = 0.25f, high = 0.75f, higher = 0.8f;
  EXPECT_THAT(Elements<float>(Run({{{1, 2}, x.data()}, {{1}, &low}})), ElementsAre(1, -2));
  EXPECT_THAT(Elements<float>(Run({{{1, 2}, x.data()}, {{1}, &high}})), ElementsAre(0, 2));
  const size_t before = compiles();
  EXPECT_THAT(Elements<float>(Run({{{1, 2}, x.data()}, {{1}, &higher}})), ElementsAre(0, 2));
  EXPECT_EQ(compiles(), before);
}

}  // namespace
}  // namespace reprise
