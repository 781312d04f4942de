// Caches are attended to where they lie.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Keys and values of [batch, heads, rows, size], as FuseAttention leaves them.
std::string Cached(int heads) {
  const std::string few = std::to_string(heads);
  std::string text = R"(graph {
    input %q: f32[2, 1, 16]
    input %ck: f32[2, HEADS, 9, 4]
    input %cv: f32[2, HEADS, 9, 4]
    const %tokens: i64[3] = {2, 9, 16}
    const %one: i64[5] = {2, 9, HEADS, 1, 4}
    const %wide: i64[5] = {2, 9, HEADS, TIMES, 4}
    %tk: ? = Transpose(%ck) {perm = [0, 2, 1, 3]}
    %tv: ? = Transpose(%cv) {perm = [0, 2, 1, 3]}
    )";
  if (heads == 4) {
    text += "%k: ? = Reshape(%tk, %tokens)\n%v: ? = Reshape(%tv, %tokens)\n";
  } else {
    text += R"(
    %k5: ? = Reshape(%tk, %one)
    %v5: ? = Reshape(%tv, %one)
    %kw: ? = Expand(%k5, %wide)
    %vw: ? = Expand(%v5, %wide)
    %k: ? = Reshape(%kw, %tokens)
    %v: ? = Reshape(%vw, %tokens)
    )";
  }
  text += "%y: ? = reprise.Attention(%q, %k, %v) {num_heads = 4, scale = 0.5}\noutput %y\n}";
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"HEADS", few}, {"TIMES", std::to_string(4 / heads)}}) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

TEST(AttendByHeadTest, CachesAreReadWhereTheyLie) {
  for (const int heads : {1, 2, 4}) {
    const std::string text = Cached(heads);
    ExpectSameAnswers(*AttendByHead(), text);
    Graph graph = ParseSpecialized(text);
    ASSERT_TRUE(AttendByHead()->Run(graph).value());
    EXPECT_EQ(OpsOf(graph), "reprise.Attention") << heads;
  }
}

// Exporters write this form: keys are transposed for the product, heads of groups repeated.
TEST(AttendByHeadTest, WholeCapturesReadCachesWhereTheyLie) {
  const std::string repeat = R"(
    const %apart: i64[5] = {2, 2, 1, 9, 4}
    const %wide: i64[5] = {2, 2, 2, 9, 4}
    const %all: i64[4] = {2, 4, 9, 4}
    %k5: ? = Reshape(%ck, %apart)
    %kw: ? = Expand(%k5, %wide)
    %k: ? = Reshape(%kw, %all)
    %v5: ? = Reshape(%cv, %apart)
    %vw: ? = Expand(%v5, %wide)
    %v: ? = Reshape(%vw, %all)
    )";
  for (const bool groups : {false, true}) {
    const std::string text =
        absl::StrCat(R"(graph {
    input %q: f32[2, 4, 1, 4]
    input %ck: f32[2, )",
                     groups ? 2 : 4, R"(, 9, 4]
    input %cv: f32[2, )",
                     groups ? 2 : 4, R"(, 9, 4]
    const %tokens: i64[3] = {2, 1, 16}
    )",
                     groups ? repeat : "%k: ? = Identity(%ck)\n%v: ? = Identity(%cv)\n", R"(
    %kt: ? = Transpose(%k) {perm = [0, 1, 3, 2]}
    %s: ? = MatMul(%q, %kt)
    %p: ? = Softmax(%s) {axis = -1}
    %o: ? = MatMul(%p, %v)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens)
    output %y
    })");
    ExpectSameAnswersAfterCapture(text);
    const Graph graph = Captured(text);
    EXPECT_EQ(CountOps(graph, "reprise.Attention"), 1) << OpsOf(graph);
    EXPECT_EQ(CountOps(graph, "Transpose"), 0) << OpsOf(graph);
    EXPECT_EQ(CountOps(graph, "Expand"), 0) << OpsOf(graph);
  }
}

TEST(AttendByHeadTest, TokensStayAsTheyAre) {
  Graph graph = ParseSpecialized(R"(graph {
    input %q: f32[2, 1, 16]
    input %k: f32[2, 9, 16]
    input %v: f32[2, 9, 16]
    %y: ? = reprise.Attention(%q, %k, %v) {num_heads = 4, scale = 0.5}
    output %y
  })");
  EXPECT_FALSE(AttendByHead()->Run(graph).value());
}

}  // namespace
}  // namespace reprise
