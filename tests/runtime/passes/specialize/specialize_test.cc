#include "runtime/passes/specialize/specialize.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "tests/testing/must_parse.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kShapes = R"(graph {
  input %x: f32[batch, sequence, 6]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  const %axes: i64[1] = {0}
  const %rest: i64[2] = {2, -1}
  %shape: ? = Shape(%x)
  %b: ? = Gather(%shape, %zero)
  %s: ? = Gather(%shape, %one)
  %b1: ? = Unsqueeze(%b, %axes)
  %s1: ? = Unsqueeze(%s, %axes)
  %target: ? = Concat(%b1, %s1, %rest) {axis = 0}
  %y: ? = Reshape(%x, %target)
  output %y
})";

TEST(SpecializeTest, ShapeArithmeticFoldsAway) {
  const auto graph = Specialize(MustParse(kShapes), {.axes = {{"batch", 2}, {"sequence", 5}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(Print(*graph), R"(graph {
  input %x: f32[2, 5, 6]
  const %target: i64[4] = {2, 5, 2, -1}
  %y: f32[2, 5, 2, 3] = Reshape(%x, %target)
  output %y
}
)");
  EXPECT_TRUE(graph->is_specialized());
}

TEST(SpecializeTest, AMissingAxisIsNamed) {
  const auto graph = Specialize(MustParse(kShapes), {.axes = {{"batch", 2}}});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()),
              HasSubstr("input 'x': the binding has no size for 'sequence'"));
}

TEST(SpecializeTest, ShapesThatDisagreeNameTheNode) {
  const auto graph = Specialize(MustParse(R"(graph {
    input %x: f32[a]
    input %y: f32[b]
    %z: ? = Add(%x, %y) @"/sum"
    output %z
  })"),
                                {.axes = {{"a", 2}, {"b", 3}}});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("Add '/sum'"));
}

TEST(SpecializeTest, AShapeThatDependsOnDataNamesTheNode) {
  const Graph symbolic = MustParse(R"(graph {
    input %x: f32[6]
    input %shape: i64[2]
    %z: ? = Reshape(%x, %shape) @view
    output %z
  })");
  const auto graph = Specialize(symbolic, {});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("Reshape 'view'"));
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("depends on data"));

  const auto bound = Specialize(symbolic, {.shape_inputs = {{"shape", Tensor::Int64s({2, 3})}}});
  ASSERT_TRUE(bound.ok()) << bound.status().ToString();
  EXPECT_EQ(*bound->value(bound->outputs()[0]).shape, (Shape{2, 3}));
}

TEST(SpecializeTest, ShapeInputsOfAnotherCountOrNameAreRefused) {
  const Graph symbolic = MustParse(R"(graph {
    input %x: f32[6]
    input %shape: i32[2]
    %s: ? = Cast(%shape) {to = 7}
    %z: ? = Reshape(%x, %s)
    output %z
  })");
  const auto message = [&](const Binding& binding) {
    const auto graph = Specialize(symbolic, binding);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(graph.status().message());
  };
  const auto i32 = [](const std::vector<int32_t>& elements) {
    return Tensor::FromVector(DType::kInt32, {static_cast<int64_t>(elements.size())}, elements);
  };
  EXPECT_THAT(message({.shape_inputs = {{"shape", i32({6})}}}), HasSubstr("has i32[1]"));
  EXPECT_THAT(message({.shape_inputs = {{"nothing", i32({6})}}}), HasSubstr("'nothing'"));
  EXPECT_THAT(message({.shape_inputs = {{"shape", Tensor::Int64s({3, 2})}}}),
              HasSubstr("i32[2]: the binding has i64[2]"));
  EXPECT_TRUE(Specialize(symbolic, {.shape_inputs = {{"shape", i32({3, 2})}}}).ok());
}

TEST(SpecializeTest, AFloatCanDecideAShape) {
  const Graph symbolic = MustParse(R"(graph {
    input %x: f32[]
    const %zero: f32[] = {0}
    const %one: f32[] = {1}
    %z: ? = Range(%zero, %x, %one)
    output %z
  })");
  const auto graph = Specialize(symbolic, {.shape_inputs = {{"x", Tensor::FloatScalar(2.5f)}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(*graph->value(graph->outputs()[0]).shape, (Shape{3}));
}

TEST(SpecializeTest, SizesAreCheckedBeforeAnythingIsAllocated) {
  const Graph symbolic = MustParse(R"(graph {
    input %x: f32[n, 1]
    input %y: f32[1, n]
    %z: ? = Add(%x, %y) @outer
    output %z
  })");
  const auto graph = Specialize(symbolic, {.axes = {{"n", 100000}}});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(graph.status().message());
  EXPECT_THAT(message, HasSubstr("Add 'outer'"));
  EXPECT_THAT(message, HasSubstr("40000000000 bytes"));
  EXPECT_THAT(message, HasSubstr("4294967296"));
  EXPECT_EQ(Specialize(symbolic, {.axes = {{"n", int64_t{1} << 62}}}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(SpecializeTest, WhatWouldFoldTooLargeIsComputedWhenTheGraphRuns) {
  const Graph symbolic = MustParse(R"(graph {
    input %x: f32[n]
    const %one: f32[1] = {1}
    %shape: ? = Shape(%x)
    %ones: ? = Expand(%one, %shape)
    %z: ? = Add(%x, %ones)
    output %z
  })");
  const auto graph = Specialize(symbolic, {.axes = {{"n", 1000}}}, {.max_folded_bytes = 100});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(graph->live_nodes(), 2u);
}

TEST(SpecializeTest, ParametersAreNeverRead) {
  const auto graph = Specialize(MustParse(R"(graph {
    input %x: f32[n, 16]
    param %w: f32[16, 16] = p0
    %wt: ? = Transpose(%w)
    %y: ? = MatMul(%x, %wt)
    %s: ? = Shape(%w)
    output %y
    output %s
  })"),
                                {.axes = {{"n", 2}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(graph->live_nodes(), 2u);
  EXPECT_EQ(graph->ConstantOf(graph->outputs()[1])->span<int64_t>()[0], 16);
}

TEST(SpecializeTest, AnOverridableConstantKeepsItsDefault) {
  const auto graph = Specialize(MustParse(R"(graph {
    input %x: f32[2]
    const %c: i64[1] = {2} overridable
    %z: ? = Reshape(%x, %c)
    output %z
  })"),
                                {});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_FALSE(graph->value(graph->FindValue("c")).overridable);
}

TEST(SpecializeTest, ADataErrorWhileFoldingNamesTheNode) {
  const auto graph = Specialize(MustParse(R"(graph {
    const %table: i64[2] = {1, 2}
    const %index: i64[1] = {7}
    %z: ? = Gather(%table, %index) @lookup
    output %z
  })"),
                                {});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("Gather 'lookup'"));
}

TEST(BindingTest, PrintsAxesAndShapeInputs) {
  const Binding binding = {.axes = {{"batch", 8}, {"sequence", 128}},
                           .shape_inputs = {{"k", Tensor::Int64s({3})}}};
  EXPECT_EQ(binding.ToString(), "batch=8,sequence=128,k=[3]");
}

TEST(BindingTest, FloatsThatDifferPrintDifferently) {
  const auto text = [](float value) {
    return Binding{.shape_inputs = {{"x", Tensor::FloatScalar(value)}}}.ToString();
  };
  EXPECT_EQ(text(0.5f), "x=[0.5]");
  EXPECT_NE(text(0.1f), text(0.1000000015f + 1e-8f));
  EXPECT_NE(text(0.0f), text(-0.0f));
}

constexpr absl::string_view kBranches = R"(graph {
  input %x: f32[batch, n]
  const %one: i64[] = {1}
  const %at: i64[1] = {1}
  %shape: ? = Shape(%x)
  %size: ? = Gather(%shape, %one)
  %is_one: ? = Equal(%size, %one)
  %squeezed: ? = Squeeze(%x, %at)
  %same: ? = Relu(%x)
  %y: ? = If(%is_one, %squeezed, %same)
  output %y
})";

TEST(SpecializeTest, OnlyTheBranchThatIsTakenHasToFit) {
  const auto one = Specialize(MustParse(kBranches), {.axes = {{"batch", 2}, {"n", 1}}});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(Print(*one), HasSubstr("%squeezed: f32[2] = Squeeze"));
  EXPECT_EQ(one->live_nodes(), 1u);
  const auto more = Specialize(MustParse(kBranches), {.axes = {{"batch", 2}, {"n", 3}}});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_THAT(Print(*more), HasSubstr("%same: f32[2, 3] = Relu"));
  EXPECT_EQ(more->live_nodes(), 1u);
}

TEST(SpecializeTest, BranchesInBranchesAreTakenFromTheOutside) {
  const auto graph = Specialize(MustParse(R"(graph {
  input %x: f32[n]
  const %yes: bool[] = {true}
  const %no: bool[] = {false}
  %a: ? = Relu(%x)
  %b: ? = Neg(%a)
  %inner: ? = If(%no, %a, %b)
  %outer: ? = If(%yes, %inner, %x)
  %next: ? = If(%no, %x, %outer)
  %y: ? = Exp(%next)
  output %y
})"),
                                {.axes = {{"n", 2}}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->live_nodes(), 3u);
  EXPECT_THAT(Print(*graph), HasSubstr("%y: f32[2] = Exp(%b)"));
}

TEST(SpecializeTest, ConditionOverDataIsNamed) {
  const auto graph = Specialize(MustParse(R"(graph {
  input %c: bool[]
  input %x: f32[n]
  %a: ? = Relu(%x)
  %y: ? = If(%c, %a, %x)
  output %y
})"),
                                {.axes = {{"n", 2}}});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("its condition depends on data"));
}

}  // namespace
}  // namespace reprise
