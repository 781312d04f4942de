// Files of a few bytes that ask an import for much.
#include "runtime/base/load_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// y = F<depth>(x): each of the functions calls the one below it twice, F0 has `op` or nothing.
ModelBuilder Doubling(int depth, const std::string& op) {
  ModelBuilder b;
  auto* domain = b.model().add_opset_import();
  domain->set_domain("f");
  domain->set_version(1);
  b.Input("x", {"n"}).Output("y");
  const auto call = [](onnx::NodeProto& node, const std::string& name, const std::string& input,
                       const std::string& output, const std::string& of) {
    node.set_op_type(name);
    node.set_domain(of);
    node.add_input(input);
    node.add_output(output);
  };
  for (int i = 0; i <= depth; ++i) {
    auto* function = b.model().add_functions();
    function->set_domain("f");
    function->set_name("F" + std::to_string(i));
    function->add_input("a");
    function->add_output("c");
    *function->add_opset_import() = b.model().opset_import(0);
    if (i == 0) {
      call(*function->add_node(), op, "a", "c", "");
      continue;
    }
    const std::string below = "F" + std::to_string(i - 1);
    call(*function->add_node(), below, "a", "b", "f");
    call(*function->add_node(), below, "b", "c", "f");
  }
  b.Node("F" + std::to_string(depth), {"x"}, {"y"}, "top", "f");
  return b;
}

TEST(LoadBudgetTest, FunctionsMayCallFunctions) {
  const auto model = ImportOnnxBytes(Doubling(10, "Relu").Bytes());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.NodeIds().size(), 1u << 10);
}

TEST(LoadBudgetTest, FunctionsThatDoubleManyTimesAreRefusedWithTheLimit) {
  for (const int depth : {16, 30}) {
    const absl::Status refused = Import(Doubling(depth, "Relu")).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("loading the model takes more than 20"), HasSubstr(" nodes"),
                      HasSubstr("the limit for a file of ")));
  }
}

// Copies of a large constant, which the file holds once.
TEST(LoadBudgetTest, FunctionsThatCopyTheirConstantsAreRefusedWithTheLimit) {
  ModelBuilder b = Doubling(12, "Relu");
  onnx::FunctionProto& function = *b.model().mutable_functions(0);
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("table");
  auto* value = constant.add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  value->mutable_t()->add_dims(1 << 18);
  for (int i = 0; i < 1 << 18; ++i) value->mutable_t()->add_float_data(1);
  const absl::Status refused = Import(b).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(" bytes ("));
}

TEST(LoadBudgetTest, WhatAFileHoldsIsNeverTooMuch) {
  ModelBuilder b;
  b.Input("x", {"n"}).Output("v30000");
  b.Node("Relu", {"x"}, {"v0"});
  for (int i = 0; i < 30000; ++i) {
    b.Node("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)}, "");
  }
  EXPECT_EQ(Import(b).status(), absl::OkStatus());
}

TEST(LoadBudgetTest, EachLimitIsNamedWithWhatWasTaken) {
  LoadBudget budget({.nodes = 2, .bytes = 100, .cpu_ns = 1'000'000'000}, 77);
  EXPECT_EQ(budget.TakeNode(40, "first"), absl::OkStatus());
  EXPECT_EQ(budget.bytes_left(), 60);
  EXPECT_EQ(budget.TakeBytes(61, "table").message(),
            "table: loading the model takes more than 100 bytes (101 by now), the limit for a file "
            "of 77 bytes");
  EXPECT_EQ(budget.TakeNode(60, "second"), absl::OkStatus());
  EXPECT_EQ(budget.TakeNode(0, "third").message(),
            "third: loading the model takes more than 2 nodes (3 by now), the limit for a file of "
            "77 bytes");
  LoadBudget late({.nodes = 1, .bytes = 1, .cpu_ns = -1});
  EXPECT_EQ(late.CheckTime("pass x").code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reprise
