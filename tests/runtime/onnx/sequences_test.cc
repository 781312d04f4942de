// Sequences and Optionals in files: their rewrites, and which are refused.
#include "runtime/onnx/values/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Inputs x [4, n] and z [4, n], and scalars to take positions from.
struct Sequences : ModelBuilder {
  Sequences() {
    Input("x", {"4", "n"}).Input("z", {"4", "n"}).Output("y");
    for (const int64_t number : {-9, -1, 0, 1, 2, 3}) {
      Initializer<int64_t>(absl::StrCat("at", number), onnx::TensorProto::INT64, {}, {number});
    }
  }
};

// Returns the op that makes output `y`, and the names of its inputs.
std::string Made(const ModelBuilder& builder) {
  auto model = Import(builder);
  if (!model.ok()) return std::string(model.status().message());
  EXPECT_TRUE(Verify(model->graph, false).ok()) << Verify(model->graph, false);
  const Value& value = model->graph.value(model->graph.outputs()[0]);
  if (value.kind != Value::Kind::kResult) return value.name;
  const Node& node = model->graph.node(value.producer);
  std::string text = node.op + "(";
  for (const ValueId input : node.inputs)
    absl::StrAppend(&text, model->graph.value(input).name, ",");
  return text + ")";
}

TEST(SequencesTest, ATensorIsTakenFromItsPlace) {
  for (const auto& [place, name] :
       std::map<std::string, std::string>{{"at0", "x"}, {"at1", "z"}, {"at-1", "z"}}) {
    Sequences b;
    b.Node("SequenceConstruct", {"x", "z"}, {"s"});
    b.Node("SequenceAt", {"s", place}, {"t"});
    b.Node("Relu", {"t"}, {"y"});
    EXPECT_EQ(Made(b), "Relu(" + name + ",)") << place;
  }
}

TEST(SequencesTest, InsertingAndErasingMoveWhatLiesBehind) {
  Sequences b;
  b.Node("Neg", {"x"}, {"m"});
  b.Node("SequenceEmpty", {}, {"s0"});
  b.Node("SequenceInsert", {"s0", "x"}, {"s1"});
  b.Node("SequenceInsert", {"s1", "z", "at0"}, {"s2"});   // z x
  b.Node("SequenceInsert", {"s2", "m", "at-1"}, {"s3"});  // z m x
  b.Node("SequenceInsert", {"s3", "m", "at3"}, {"s4"});   // z m x m
  b.Node("SequenceErase", {"s4", "at1"}, {"s5"});         // z x m
  b.Node("ConcatFromSequence", {"s5"}, {"y"});
  SetAttribute(*b.graph().mutable_node()->rbegin(), "axis", int64_t{1});
  EXPECT_EQ(Made(b), "Concat(z,x,m,)");
  b.graph().mutable_node()->RemoveLast();
  b.Node("SequenceErase", {"s5"}, {"s6"});
  b.Node("ConcatFromSequence", {"s6"}, {"y"});
  SetAttribute(*b.graph().mutable_node()->rbegin(), "axis", int64_t{1});
  EXPECT_EQ(Made(b), "Concat(z,x,)");
}

TEST(SequencesTest, APositionMayBeComputedFromConstantsAndLengths) {
  Sequences b;
  b.Node("SequenceConstruct", {"x", "z", "x"}, {"s"});
  b.Node("SequenceLength", {"s"}, {"n"});
  b.Node("Sub", {"n", "at2"}, {"place"});
  b.Node("SequenceAt", {"s", "place"}, {"t"});
  b.Node("Relu", {"t"}, {"y"});
  EXPECT_EQ(Made(b), "Relu(z,)");
}

TEST(SequencesTest, PiecesOfOneElementAreTakenAtAnyPosition) {
  Sequences b;
  b.Input("i", {}, onnx::TensorProto::INT64);
  SetAttribute(b.Node("SplitToSequence", {"x"}, {"s"}), "axis", int64_t{1});
  b.Node("SequenceAt", {"s", "i"}, {"y"});
  EXPECT_THAT(Made(b), HasSubstr("Unsqueeze("));
  SetAttribute(*b.graph().mutable_node(0), "keepdims", int64_t{0});
  EXPECT_EQ(Made(b), "Gather(x,i,)");
}

TEST(SequencesTest, PiecesPutTogetherAgainAreWhatWasSplit) {
  Sequences b;
  SetAttribute(b.Node("SplitToSequence", {"x", "at3"}, {"s"}), "axis", int64_t{1});
  SetAttribute(b.Node("ConcatFromSequence", {"s"}, {"t"}), "axis", int64_t{1});
  b.Node("Relu", {"t"}, {"y"});
  EXPECT_EQ(Made(b), "Relu(x,)");
}

TEST(SequencesTest, AnIfChoosesBetweenListsOfOneLength) {
  Sequences b;
  b.Input("c", {}, onnx::TensorProto::BOOL);
  auto& node = b.Node("If", {"c"}, {"s"}, "choice");
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::GraphProto& graph = AddBranch(node, branch);
    AddBranchNode(graph, branch[0] == 't' ? "Relu" : "Neg", {"x"}, "r");
    AddBranchNode(graph, "SequenceConstruct", {"r", "z"}, "l");
    graph.add_output()->set_name("l");
  }
  b.Node("SequenceAt", {"s", "at0"}, {"y"});
  EXPECT_THAT(Made(b), HasSubstr("If(c,"));
  // As many tensors after one branch as after the other.
  node.mutable_attribute(1)->mutable_g()->mutable_node(1)->add_input("z");
  EXPECT_THAT(Unimplemented(b),
              AllOf(HasSubstr("'choice'"), HasSubstr("a sequence of 2 or of 3 tensors")));
}

TEST(SequencesTest, WhatAnOptionalHoldsIsKnown) {
  Sequences b;
  b.Node("Optional", {"x"}, {"o"});
  b.Node("OptionalGetElement", {"o"}, {"t"});
  b.Node("Relu", {"t"}, {"y"});
  EXPECT_EQ(Made(b), "Relu(x,)");
  for (const bool full : {true, false}) {
    Sequences has;
    has.Node("Optional", {full ? "x" : ""}, {"o"});
    has.Node("OptionalHasElement", {"o"}, {"y"});
    const auto model = Import(has);
    ASSERT_TRUE(model.ok()) << model.status();
    const Tensor* known = model->graph.ConstantOf(model->graph.outputs()[0]);
    ASSERT_NE(known, nullptr);
    EXPECT_EQ((*known->ToInt64s())[0], full ? 1 : 0);
  }
  Sequences empty;
  empty.Node("Optional", {}, {"o"});
  empty.Node("OptionalGetElement", {"o"}, {"y"}, "taken");
  EXPECT_THAT(InvalidArgument(empty), AllOf(HasSubstr("'taken'"), HasSubstr("that is empty")));
}

TEST(SequencesTest, PositionsOutsideAreRefusedWithBothNumbers) {
  Sequences b;
  b.Node("SequenceConstruct", {"x", "z"}, {"s"});
  b.Node("SequenceAt", {"s", "at2"}, {"y"}, "taken");
  EXPECT_THAT(InvalidArgument(b),
              AllOf(HasSubstr("'taken'"), HasSubstr("position 2 lies outside a sequence of 2")));
  Sequences pieces;
  pieces.Node("SplitToSequence", {"x", "at3"}, {"s"});  // 4 rows: pieces of 3 and of 1
  pieces.Node("SequenceAt", {"s", "at2"}, {"y"});
  EXPECT_THAT(InvalidArgument(pieces), HasSubstr("position 2 lies outside a sequence of 2"));
  Sequences before;
  before.Node("SequenceEmpty", {}, {"s"});
  before.Node("SequenceInsert", {"s", "x", "at-9"}, {"t"});
  before.Node("SequenceAt", {"t", "at0"}, {"y"});
  EXPECT_THAT(InvalidArgument(before), HasSubstr("position -9 lies outside a sequence of 0"));
}

TEST(SequencesTest, APositionOfARequestSelectsAmongTensors) {
  Sequences at;
  at.Input("i", {}, onnx::TensorProto::INT64);
  at.Node("SequenceConstruct", {"x", "z"}, {"s"});
  at.Node("SequenceAt", {"s", "i"}, {"y"}, "taken");
  EXPECT_EQ(Made(at), "reprise.SelectItem(i,x,z,)");
  EXPECT_THAT(Text(at), HasSubstr("{count = 2, from = [1], last = 1}"));

  // After an insertion the middle one of three is the old one, the new one, or the next one.
  Sequences inserted;
  inserted.Input("i", {}, onnx::TensorProto::INT64);
  inserted.Node("Neg", {"x"}, {"m"});
  inserted.Node("SequenceConstruct", {"x", "z"}, {"s"});
  inserted.Node("SequenceInsert", {"s", "m", "i"}, {"t"});
  inserted.Node("SequenceAt", {"t", "at1"}, {"y"});
  EXPECT_EQ(Made(inserted), "reprise.SelectItem(i,x,m,z,)");
  EXPECT_THAT(Text(inserted), HasSubstr("{count = 2, from = [1, 2], last = 2}"));

  Sequences erased;
  erased.Input("i", {}, onnx::TensorProto::INT64);
  erased.Node("SequenceConstruct", {"x", "z"}, {"s"});
  erased.Node("SequenceErase", {"s", "i"}, {"t"});
  erased.Node("SequenceAt", {"t", "at-1"}, {"y"});
  EXPECT_EQ(Made(erased), "reprise.SelectItem(i,z,x,)");
  EXPECT_THAT(Text(erased), HasSubstr("{count = 2, from = [1], last = 1}"));
}

TEST(SequencesTest, SizesOfARequestCutAsManyPiecesAsThereAre) {
  Sequences b;
  b.Input("sizes", {"3"}, onnx::TensorProto::INT64);
  b.Node("SplitToSequence", {"x", "sizes"}, {"s"});
  b.Node("SequenceAt", {"s", "at2"}, {"y"});
  EXPECT_EQ(Made(b), "Split(x,sizes,)");
  Sequences any;
  any.Input("sizes", {"k"}, onnx::TensorProto::INT64);
  any.Node("SplitToSequence", {"x", "sizes"}, {"s"});
  any.Node("SequenceAt", {"s", "at2"}, {"y"});
  EXPECT_THAT(Unimplemented(any), HasSubstr("splits into sizes that the model computes"));
}

TEST(SequencesTest, WhatARequestDecidesIsRefusedByName) {
  Sequences all;
  SetAttribute(all.Node("SplitToSequence", {"x"}, {"s"}), "axis", int64_t{1});
  all.Node("SequenceErase", {"s"}, {"t"}, "erased");
  all.Node("SequenceAt", {"t", "at0"}, {"y"}, "taken");
  EXPECT_THAT(Unimplemented(all), AllOf(HasSubstr("'erased'"), HasSubstr("all pieces of 's'"),
                                        Not(HasSubstr("'taken'"))));
}

TEST(SequencesTest, ALoopThatCarriesASequenceIsRefusedByName) {
  Sequences b;
  b.Node("SequenceConstruct", {"x"}, {"s"});
  auto& loop = b.Node("Loop", {"at3", "", "s"}, {"t"}, "grows");
  onnx::GraphProto& body = AddBranch(loop, "body");
  for (const char* name : {"i", "go_in", "a"}) body.add_input()->set_name(name);
  body.mutable_input(2)->mutable_type()->mutable_sequence_type()->mutable_elem_type();
  AddBranchNode(body, "SequenceInsert", {"a", "x"}, "longer");
  AddBranchNode(body, "Identity", {"go_in"}, "go_out");
  for (const char* name : {"go_out", "longer"}) body.add_output()->set_name(name);
  b.Node("SequenceAt", {"t", "at0"}, {"y"}, "taken");
  EXPECT_THAT(Unimplemented(b),
              AllOf(HasSubstr("'grows'"), HasSubstr("carries 'a', which is not a tensor"),
                    Not(HasSubstr("'taken'"))));
}

TEST(SequencesTest, RequestsAndAnswersCarryTensorsAlone) {
  Sequences out;
  out.Node("SequenceConstruct", {"x"}, {"y"});
  EXPECT_THAT(Unimplemented(out), HasSubstr("output 'y': is a sequence or an Optional"));
  Sequences in;
  auto* input = in.graph().add_input();
  input->set_name("many");
  input->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
  in.Node("SequenceAt", {"many", "at0"}, {"y"}, "taken");
  EXPECT_THAT(Unimplemented(in),
              AllOf(HasSubstr("input 'many': is a sequence"), Not(HasSubstr("'taken'"))));
}

TEST(SequencesTest, OtherOpsDoNotTakeSequences) {
  Sequences b;
  b.Node("SequenceConstruct", {"x"}, {"s"});
  b.Node("Relu", {"s"}, {"y"}, "relu");
  EXPECT_THAT(InvalidArgument(b),
              AllOf(HasSubstr("'relu'"), HasSubstr("input 0 ('s') is not a tensor")));
  Sequences tensor;
  tensor.Node("SequenceLength", {"x"}, {"y"}, "length");
  EXPECT_THAT(InvalidArgument(tensor),
              AllOf(HasSubstr("'length'"), HasSubstr("'x') is not a sequence")));
}

TEST(SequencesTest, FilesThatMakeVeryManyLongListsAreRefused) {
  const auto with_lists = [](int lists) {
    Sequences b;
    b.Input("w", {"60000"});
    b.Node("SplitToSequence", {"w"}, {"s0"});
    SetAttribute(*b.graph().mutable_node()->rbegin(), "keepdims", int64_t{1});
    std::string last = "s0";
    for (int i = 1; i <= lists; ++i) {
      b.Node("SequenceErase", {last}, {absl::StrCat("s", i)}, absl::StrCat("erase", i));
      last = absl::StrCat("s", i);
    }
    b.Node("SequenceLength", {last}, {"count"});
    b.Node("Cast", {"count"}, {"y"});
    SetAttribute(*b.graph().mutable_node()->rbegin(), "to", int64_t{1});
    return b;
  };
  EXPECT_TRUE(Import(with_lists(3)).ok()) << Import(with_lists(3)).status();
  EXPECT_THAT(Unimplemented(with_lists(40)),
              AllOf(HasSubstr("node 'erase"), HasSubstr("more than 2097152 together")));
}

}  // namespace
}  // namespace reprise
