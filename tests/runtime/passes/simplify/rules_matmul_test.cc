#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(MatMulRulesTest, AGemmWithAParameterIsAMatMulAndAnAdd) {
  ExpectCanonical(R"(graph {
    input %x: f32[3, 4]
    param %w: f32[5, 4] = p0
    param %b: f32[1, 5] = p1
    %y: ? = Gemm(%x, %w, %b) {transB = 1}
    output %y
  })",
                  R"(graph {
    input %x: f32[3, 4]
    param %wt: f32[4, 5] = Transpose{perm = [1, 0]}(p0)
    param %b: f32[5] = Reshape{allowzero = 1}(p1, i64[1]{5})
    %m: ? = MatMul(%x, %wt)
    %y: ? = Add(%m, %b)
    output %y
  })");
}

TEST(MatMulRulesTest, AScaledOrTransposedGemmAndOneOverDataStay) {
  for (const char* gemm : {"Gemm(%x, %w) {alpha = 2.0}", "Gemm(%x, %w) {transA = 1}",
                           "Gemm(%x, %w, %b) {beta = 2.0}", "Gemm(%x, %d)"}) {
    ExpectUnchanged(*Canonicalize(), absl::StrCat(R"(graph {
    input %x: f32[4, 4]
    input %d: f32[4, 4]
    param %w: f32[4, 4] = p0
    param %b: f32[4] = p1
    %y: ? = )",
                                                  gemm, "\n output %y\n}"));
  }
}

TEST(MatMulRulesTest, AFusedMatMulOfAWeightIsAMatMulAndAMul) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 4, 3]
    param %w: f32[5, 4] = p0
    %y: ? = com.microsoft.FusedMatMul(%x, %w) {alpha = 0.5, transA = 1, transB = 1}
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 4, 3]
    param %wt: f32[4, 5] = Transpose{perm = [1, 0]}(p0)
    const %half: f32[] = {0.5}
    %xt: ? = Transpose(%x) {perm = [0, 2, 1]}
    %m: ? = MatMul(%xt, %wt)
    %y: ? = Mul(%m, %half)
    output %y
  })");
}

TEST(MatMulRulesTest, OfAFusedMatMulOfDataTheLeftSideAloneIsTurned) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 4, 3]
    input %z: f32[2, 5, 4]
    %y: ? = com.microsoft.FusedMatMul(%x, %z) {alpha = 0.5, transA = 1, transB = 1}
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 4, 3]
    input %z: f32[2, 5, 4]
    %xt: ? = Transpose(%x) {perm = [0, 2, 1]}
    %y: ? = com.microsoft.FusedMatMul(%xt, %z) {alpha = 0.5, transA = 0, transB = 1}
    output %y
  })");
}

TEST(MatMulRulesTest, RowsThatWereFlattenedAroundAProductAreNot) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    param %w: f32[4, 5] = p0
    param %b: f32[5] = p1
    const %flat: i64[2] = {-1, 4}
    const %back: i64[3] = {2, 3, 5}
    const %half: f32[] = {0.5}
    %rows: ? = Reshape(%x, %flat)
    %m: ? = MatMul(%rows, %w)
    %a: ? = Add(%b, %m)
    %h: ? = Mul(%a, %half)
    %g: ? = Mul(%a, %h)
    %y: ? = Reshape(%g, %back)
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    param %w: f32[4, 5] = p0
    param %b: f32[5] = p1
    const %half: f32[] = {0.5}
    %m: ? = MatMul(%x, %w)
    %a: ? = Add(%b, %m)
    %h: ? = Mul(%a, %half)
    %g: ? = Mul(%a, %h)
    output %g
  })");
}

TEST(MatMulRulesTest, AReshapeOfTheFeaturesOrAnOperandOfSeveralRowsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3, 4]
    param %w: f32[6, 5] = p0
    param %b: f32[4, 6] = p1
    param %c: f32[5] = p2
    const %shape: i64[2] = {4, 6}
    const %shape2: i64[2] = {4, 5}
    input %z: f32[2, 2, 5]
    %rows: ? = Reshape(%x, %shape) {allowzero = 1}
    %m: ? = MatMul(%rows, %w)
    %a: ? = Add(%rows, %b)
    %z2: ? = Reshape(%z, %shape2) {allowzero = 1}
    %s: ? = Add(%m, %z2)
    output %a
    output %s
  })");
}

std::string EinsumGraph(absl::string_view a, absl::string_view b, absl::string_view equation) {
  return absl::StrCat("graph {\n input %a: f32", a, "\n input %b: f32", b,
                      "\n %y: ? = Einsum(%a, %b) {equation = \"", equation, "\"}\n output %y\n}");
}

TEST(MatMulRulesTest, AnEinsumOfTwoIsAProduct) {
  const std::vector<std::vector<std::string>> cases = {
      {"[2, 3, 4]", "[4, 5]", "abc,cd->abd"},
      {"[2, 3, 4]", "[4, 2, 5]", "abc, cde -> abde"},
      {"[2, 3, 4, 5]", "[4, 5, 6]", "abcd,cde->abe"},
      {"[2, 7, 4, 5]", "[2, 3, 4, 5]", "aecd,abcd->acbe"},
      {"[2, 4, 3, 7]", "[2, 7, 4, 5]", "acbe,aecd->abcd"},
      {"[2, 3, 4]", "[2, 5, 4]", "bik,bjk->bij"},
      {"[2, 3, 4]", "[2, 5, 4]", "bik,bjk->jib"},
      {"[2, 3, 4]", "[2, 5, 4]", "...ik,...jk->...ij"},
      {"[7, 2, 3, 4]", "[2, 4, 5]", "b...ac,...cd->...bad"},
      {"[2, 3, 4]", "[4, 5]", "...c,cd->...d"},
      {"[3]", "[3, 4]", "i,ij->j"},
  };
  for (const auto& c : cases) {
    const std::string text = EinsumGraph(c[0], c[1], c[2]);
    ExpectSameAnswers(*Canonicalize(), text);
    const Graph graph = Captured(text);
    EXPECT_EQ(CountOps(graph, "Einsum"), c[0] == "[3]" ? 1 : 0) << c[2];
  }
}

TEST(MatMulRulesTest, AnEinsumThatIsNoProductStays) {
  ExpectUnchanged(*Canonicalize(), EinsumGraph("[3, 3]", "[3, 4]", "ii,ij->ij"));
  ExpectUnchanged(*Canonicalize(), EinsumGraph("[3, 4]", "[4, 5]", "ij,jk->i"));
}

TEST(MatMulRulesTest, AnEinsumThatSumsNothingMultipliesElements) {
  const std::vector<std::vector<std::string>> cases = {{"[3, 4]", "[3, 4]", "ij,ij->ij"},
                                                       {"[3, 4]", "[4, 3]", "ij,ji->ji"},
                                                       {"[3, 4]", "[5, 6]", "ij,kl->ikjl"},
                                                       {"[2, 3, 4]", "[2, 3]", "abc,ab->cab"},
                                                       {"[5]", "[3]", "i,j->ij"}};
  for (const auto& c : cases) {
    const std::string text = EinsumGraph(c[0], c[1], c[2]);
    ExpectSameAnswers(*Canonicalize(), text);
    const Graph graph = Captured(text);
    EXPECT_EQ(CountOps(graph, "Einsum"), 0) << c[2];
    EXPECT_EQ(CountOps(graph, "Mul"), 1) << c[2];
  }
}

TEST(MatMulRulesTest, AnEinsumOfRowsByRowsMultipliesAndSums) {
  const std::string text = EinsumGraph("[2, 3, 4]", "[4, 2, 3]", "abc,cab->ba");
  ExpectSameAnswers(*Canonicalize(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "Einsum"), 0);
  EXPECT_EQ(CountOps(graph, "ReduceSum"), 1);
}

// Gates of experts are multiplied in before the experts' weights, which is less work than after
// them.
TEST(MatMulRulesTest, AnEinsumOfThreeIsTwoProducts) {
  const std::string text = R"(graph {
    input %h: f32[2, 3, 4, 5]
    param %w: f32[4, 5, 64] = p0
    input %g: f32[2, 3, 4]
    %y: ? = Einsum(%h, %w, %g) {equation = "blef,efd,ble->bld"}
    output %y
  })";
  ExpectSameAnswers(*Canonicalize(), text);
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "Einsum"), 0);
  EXPECT_EQ(CountOps(graph, "Mul"), 1);
}

TEST(MatMulRulesTest, ABiasOfHeadsComesBeforeTheirSplit) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 8]
    param %b: f32[2, 4] = p0
    const %heads: i64[4] = {2, 3, 2, 4}
    %h: ? = Reshape(%x, %heads)
    %y: ? = Add(%h, %b)
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 3, 8]
    param %b: f32[8] = Reshape{allowzero = 1}(p0, i64[1]{8})
    const %heads: i64[4] = {2, 3, 2, 4}
    %s: ? = Add(%x, %b)
    %y: ? = Reshape(%s, %heads) {allowzero = 1}
    output %y
  })");
}

TEST(MatMulRulesTest, ColumnsByRowsOfAConstantAreAnElementwiseProduct) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 1, 3]
    const %f: f32[2, 4, 1] = {1, 2, 3, 4, 1, 2, 3, 4}
    %y: ? = MatMul(%f, %x)
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 1, 3]
    const %f: f32[1, 4, 1] = {1, 2, 3, 4}
    %y: ? = Mul(%f, %x)
    output %y
  })");
  // Slices that differ stay; so does a product of values that both depend on the request.
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 1]
    const %f: f32[2, 1, 2] = {1, 2, 3, 4}
    %y: ? = MatMul(%x, %f)
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 3, 1]
    const %f: f32[2, 1, 2] = {1, 2, 3, 4}
    %y: ? = Mul(%x, %f)
    output %y
  })");
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3, 1]
    input %z: f32[2, 1, 3]
    %y: ? = MatMul(%x, %z)
    output %y
  })");
}

// Frequencies and positions that are both repeated for each row: one of the two keeps the rows.
// With fewer positions all would be folded.
TEST(MatMulRulesTest, AnOuterProductOfCopiesKeepsTheirNumber) {
  constexpr int64_t kSize = 3000;
  const std::string numbers = absl::StrJoin(std::vector<int>(2 * kSize, 3), ", ");
  const std::string rewritten =
      RunPass(*Canonicalize(), absl::StrCat("graph {\nconst %a: f32[2, ", kSize, ", 1] = {",
                                            numbers, "}\nconst %b: f32[2, 1, ", kSize, "] = {",
                                            numbers, "}\n%y: ? = MatMul(%a, %b)\noutput %y\n}"));
  EXPECT_NE(rewritten.find("f32[2, 3000, 3000] = Mul("), std::string::npos);
}

TEST(MatMulRulesTest, RowsThatRepeatAreMultipliedOnce) {
  const auto product = [](const char* rows, const char* values) {
    return absl::StrCat("graph {\n param %w: f32[2, 3] = p0\n const %r: f32", rows, " = {", values,
                        "}\n input %x: f32[1]\n %p: ? = MatMul(%r, %w)\n %y: ? = Add(%p, %x)\n",
                        " output %y\n}");
  };
  for (const auto& [rows, values] : {std::pair("[3, 2, 2]", "1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6"),
                                     std::pair("[2, 2, 2]", "1, 2, 3, 4, 1, 2, 3, 4"),
                                     std::pair("[3, 2]", "7, 8, 7, 8, 7, 8")}) {
    SCOPED_TRACE(values);
    ExpectSameAnswers(*Canonicalize(), product(rows, values));
    Graph graph = ParseSpecialized(product(rows, values));
    ASSERT_TRUE(Canonicalize()->Run(graph).ok());
    EXPECT_EQ(OpsOf(graph), "MatMul Add Expand");
  }
  // Rows of which one differs, and features that repeat.
  ExpectUnchanged(*Canonicalize(), product("[3, 2]", "7, 8, 7, 8, 7, 9"));
  ExpectUnchanged(*Canonicalize(), product("[2, 2]", "7, 7, 8, 8"));
}

}  // namespace
}  // namespace reprise
