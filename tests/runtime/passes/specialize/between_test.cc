#include "runtime/passes/specialize/between.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/text.h"
#include "runtime/passes/kit/pass.h"

namespace reprise {
namespace {

Binding At(int64_t tokens, int64_t picks) {
  return {.axes = {{"picks", picks}, {"tokens", tokens}}};
}

Graph RewrittenFrom(absl::string_view text, const Binding& binding) {
  const auto symbolic = Parse(text);
  EXPECT_TRUE(symbolic.ok()) << symbolic.status();
  auto graph = Specialize(*symbolic, binding);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(RunCapturePasses(*graph).ok());
  return *std::move(graph);
}

absl::StatusOr<Graph> Between(absl::string_view text, const Binding& wanted) {
  const Binding low = At(2, 3), high = At(521, 257);
  const Graph at_low = RewrittenFrom(text, low), at_high = RewrittenFrom(text, high);
  return GraphBetween({at_low, low}, {at_high, high}, wanted);
}

// Heads of tokens, turned, and a few rows of them: dims and constants of both axes.
constexpr absl::string_view kHeads = R"(graph {
  input %x: f32[tokens, 1, 64]
  input %y: f32[picks, 64]
  const %begin: i64[1] = {0}
  const %end: i64[1] = {1}
  const %rest: i64[2] = {4, 16}
  const %square: i64[2] = {8, 8}
  %shape: ? = Shape(%x)
  %count: ? = Slice(%shape, %begin, %end)
  %target: ? = Concat(%count, %rest) {axis = 0}
  %heads: ? = Reshape(%x, %target)
  %turned: ? = Transpose(%heads) {perm = [1, 0, 2]}
  %soft: ? = Softmax(%turned) {axis = -1}
  %wide: ? = Shape(%y)
  %many: ? = Slice(%wide, %begin, %end)
  %cut: ? = Concat(%many, %square) {axis = 0}
  %squares: ? = Reshape(%y, %cut)
  %z: ? = ReduceSum(%squares, %begin)
  output %soft
  output %z
})";

TEST(GraphBetweenTest, IsWhatThePassesMakeAtThatSize) {
  for (const auto& [tokens, picks] : {std::pair{4, 5}, std::pair{8, 9}, std::pair{64, 65},
                                      std::pair{256, 257}, std::pair{512, 257}}) {
    const auto between = Between(kHeads, At(tokens, picks));
    ASSERT_TRUE(between.ok()) << between.status();
    EXPECT_EQ(Print(*between), Print(RewrittenFrom(kHeads, At(tokens, picks))));
  }
}

TEST(GraphBetweenTest, ANumberOnNoLineIsNotGuessed) {
  // The square of a size.
  const auto between = Between(R"(graph {
    input %x: f32[tokens, 1]
    const %flat: i64[1] = {-1}
    %turned: ? = Transpose(%x) {perm = [1, 0]}
    %square: ? = MatMul(%x, %turned)
    %all: ? = Reshape(%square, %flat)
    output %all
  })",
                               At(64, 65));
  EXPECT_EQ(between.status().code(), absl::StatusCode::kNotFound) << between.status();
}

TEST(GraphBetweenTest, GraphsOfAnotherFormAreNotJoined) {
  // Two rows are all that the slice leaves of two.
  const auto between = Between(R"(graph {
    input %x: f32[tokens, 3]
    const %begin: i64[1] = {0}
    const %end: i64[1] = {2}
    %some: ? = Slice(%x, %begin, %end)
    %y: ? = Exp(%some)
    output %y
  })",
                               At(64, 65));
  EXPECT_EQ(between.status().code(), absl::StatusCode::kNotFound) << between.status();
}

}  // namespace
}  // namespace reprise
