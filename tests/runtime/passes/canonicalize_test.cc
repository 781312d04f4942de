#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/text.h"
#include "runtime/passes/passes.h"
#include "tests/runtime/passes/pass_test_util.h"

namespace reprise {
namespace {

void ExpectCanonical(absl::string_view text, absl::string_view expected) {
  ExpectRewrite(*Canonicalize(), text, expected);
}

TEST(CanonicalizeTest, IdentityDropoutAndCastToTheSameTypeGo) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    const %ratio: f32[] = {0.5}
    %a: ? = Identity(%x)
    %b: ? = Dropout(%a, %ratio)
    %c: ? = Cast(%b) {to = 1}
    %d: ? = Relu(%c)
    output %d
  })",
                  R"(graph {
    input %x: f32[2, 3]
    %d: ? = Relu(%x)
    output %d
  })");
}

TEST(CanonicalizeTest, ACastToAnotherTypeStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3]
    %c: ? = Cast(%x) {to = 7}
    output %c
  })");
}

TEST(CanonicalizeTest, ViewsInARowBecomeOneReshape) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    const %axes: i64[1] = {0}
    const %shape: i64[2] = {3, -1}
    %a: ? = Unsqueeze(%x, %axes)
    %b: ? = Flatten(%a) {axis = 2}
    %c: ? = Reshape(%b, %shape)
    %d: ? = Relu(%c)
    output %d
  })",
                  R"(graph {
    input %x: f32[2, 3]
    const %shape: i64[2] = {3, 2}
    %c: ? = Reshape(%x, %shape) {allowzero = 1}
    %d: ? = Relu(%c)
    output %d
  })");
}

TEST(CanonicalizeTest, ViewsThatEndWhereTheyBeganGo) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    const %axes: i64[1] = {1}
    %a: ? = Unsqueeze(%x, %axes)
    %b: ? = Squeeze(%a, %axes)
    %d: ? = Relu(%b)
    output %d
  })",
                  R"(graph {
    input %x: f32[2, 3]
    %d: ? = Relu(%x)
    output %d
  })");
}

TEST(CanonicalizeTest, TransposesOfTransposesBecomeOneOrNone) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    %a: ? = Transpose(%x) {perm = [1, 2, 0]}
    %b: ? = Transpose(%a) {perm = [0, 2, 1]}
    %c: ? = Transpose(%b) {perm = [1, 0, 2]}
    %d: ? = Relu(%c)
    output %b
    output %d
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    %d: ? = Relu(%x)
    %b: ? = Transpose(%x) {perm = [1, 0, 2]}
    output %b
    output %d
  })");
}

TEST(CanonicalizeTest, ATransposeThatMovesNoElementIsAReshape) {
  ExpectCanonical(R"(graph {
    input %x: f32[1, 3, 4]
    %a: ? = Transpose(%x) {perm = [1, 0, 2]}
    %d: ? = Relu(%a)
    output %d
  })",
                  R"(graph {
    input %x: f32[1, 3, 4]
    const %shape: i64[3] = {3, 1, 4}
    %d: ? = Relu(%x)
    %a: ? = Reshape(%d, %shape) {allowzero = 1}
    output %a
  })");
}

TEST(CanonicalizeTest, NeutralOperandsGo) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    const %zero: f32[] = {0}
    const %one: f32[3] = {1, 1, 1}
    %a: ? = Add(%zero, %x)
    %b: ? = Mul(%a, %one)
    %c: ? = Sub(%b, %zero)
    %d: ? = Div(%c, %one)
    %e: ? = Pow(%d, %one)
    %f: ? = Relu(%e)
    output %f
  })",
                  R"(graph {
    input %x: f32[2, 3]
    %f: ? = Relu(%x)
    output %f
  })");
}

TEST(CanonicalizeTest, ANeutralOperandThatBroadcastsOrComesFirstStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[3]
    const %zeros: f32[2, 3] = {0, 0, 0, 0, 0, 0}
    const %zero: f32[] = {0}
    %a: ? = Add(%x, %zeros)
    %b: ? = Sub(%zero, %a)
    output %b
  })");
}

TEST(CanonicalizeTest, FloatDivisionByAConstantBecomesAProduct) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    const %eight: f32[] = {8}
    %a: ? = Div(%x, %eight)
    output %a
  })",
                  R"(graph {
    input %x: f32[2, 3]
    const %eighth: f32[] = {0.125}
    %a: ? = Mul(%x, %eighth)
    output %a
  })");
}

TEST(CanonicalizeTest, IntegerDivisionAndDivisionByZeroStay) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: i64[2, 3]
    input %y: f32[2, 3]
    const %eight: i64[] = {8}
    const %zero: f32[] = {0}
    const %tiny: f32[] = {1e-40}
    %a: ? = Div(%x, %eight)
    %b: ? = Div(%y, %zero)
    %c: ? = Div(%y, %tiny)
    output %a
    output %b
    output %c
  })");
}

TEST(CanonicalizeTest, ConstantConditionsChoose) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    input %m: bool[2, 3]
    const %true: bool[3] = {true, true, true}
    const %false: bool[] = {false}
    const %zero: f32[] = {0}
    %a: ? = And(%true, %m)
    %b: ? = Or(%a, %false)
    %c: ? = Where(%b, %x, %zero)
    %d: ? = Where(%true, %c, %x)
    output %d
  })",
                  R"(graph {
    input %x: f32[2, 3]
    input %m: bool[2, 3]
    const %zero: f32[] = {0}
    %c: ? = Where(%m, %x, %zero)
    output %c
  })");
}

TEST(CanonicalizeTest, AConditionOfBothKindsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2]
    input %m: bool[2]
    const %mixed: bool[2] = {true, false}
    const %zero: f32[] = {0}
    %a: ? = And(%m, %mixed)
    %b: ? = Where(%mixed, %x, %zero)
    output %a
    output %b
  })");
}

TEST(CanonicalizeTest, AnExpandMovesBehindElementwiseNodesAndGoesWhereOthersBroadcast) {
  // A mask that an all-true condition blows up to [2, 1, 3, 3]: only the sum needs that shape.
  ExpectCanonical(R"(graph {
    input %m: bool[2, 1, 1, 3]
    input %scores: f32[2, 4, 3, 3]
    const %true: bool[1, 1, 3, 1] = {true, true, true}
    const %zero: f32[] = {0}
    const %low: f32[] = {-inf}
    %a: ? = And(%true, %m)
    %b: ? = Where(%a, %zero, %low)
    %c: ? = Add(%scores, %b)
    output %c
  })",
                  R"(graph {
    input %m: bool[2, 1, 1, 3]
    input %scores: f32[2, 4, 3, 3]
    const %zero: f32[] = {0}
    const %low: f32[] = {-inf}
    %b: ? = Where(%m, %zero, %low)
    %c: ? = Add(%scores, %b)
    output %c
  })");
}

TEST(CanonicalizeTest, AnExpandThatNothingElseDoesStaysInTheEnd) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 1]
    const %shape: i64[2] = {2, 3}
    %a: ? = Expand(%x, %shape)
    %b: ? = Relu(%a)
    output %b
  })",
                  R"(graph {
    input %x: f32[2, 1]
    const %shape: i64[2] = {2, 3}
    %b: ? = Relu(%x)
    %a: ? = Expand(%b, %shape)
    output %a
  })");
}

TEST(CanonicalizeTest, AReductionComesBeforeAnExpandOfOtherDims) {
  // Mean pooling: the mask is summed before it is spread over the features.
  ExpectCanonical(R"(graph {
    input %mask: f32[2, 3, 1]
    input %sum: f32[2, 4]
    const %shape: i64[3] = {2, 3, 4}
    const %axis: i64[1] = {1}
    %wide: ? = Expand(%mask, %shape)
    %count: ? = ReduceSum(%wide, %axis) {keepdims = 0}
    %mean: ? = Div(%sum, %count)
    output %mean
  })",
                  R"(graph {
    input %mask: f32[2, 3, 1]
    input %sum: f32[2, 4]
    const %axis: i64[1] = {1}
    %count: ? = ReduceSum(%mask, %axis) {keepdims = 0}
    %mean: ? = Div(%sum, %count)
    output %mean
  })");
}

TEST(CanonicalizeTest, AReductionOfExpandedDimsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %mask: f32[2, 3, 1]
    const %shape: i64[3] = {2, 3, 4}
    const %axes: i64[2] = {1, 2}
    %wide: ? = Expand(%mask, %shape)
    %count: ? = ReduceSum(%wide, %axes) {keepdims = 0}
    output %count
  })");
}

TEST(CanonicalizeTest, ASoftmaxOfFlattenedRowsIsOneOfTheRows) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    const %shape: i64[3] = {2, 3, 4}
    %flat: ? = Flatten(%x) {axis = 2}
    %soft: ? = Softmax(%flat) {axis = 1}
    %y: ? = Reshape(%soft, %shape)
    output %y
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    %y: ? = Softmax(%x) {axis = -1}
    output %y
  })");
}

TEST(CanonicalizeTest, ASoftmaxOverSeveralDimsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3, 4]
    const %shape: i64[2] = {2, 12}
    %flat: ? = Reshape(%x, %shape) {allowzero = 1}
    %soft: ? = Softmax(%flat) {axis = 1}
    output %soft
  })");
}

TEST(CanonicalizeTest, AGemmWithAParameterIsAMatMulAndAnAdd) {
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

TEST(CanonicalizeTest, AScaledOrTransposedGemmAndOneOverDataStay) {
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

TEST(CanonicalizeTest, RowsThatWereFlattenedAroundAProductAreNot) {
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

TEST(CanonicalizeTest, AReshapeOfTheFeaturesOrAnOperandOfSeveralRowsStays) {
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

std::string GatherNd(absl::string_view indices, absl::string_view shape) {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 3]
    const %indices: i64)",
                      shape, " = {", indices, R"(}
    %a: ? = GatherND(%x, %indices)
    %b: ? = Relu(%a)
    output %b
  })");
}

TEST(CanonicalizeTest, AGatherNdOfEverythingInOrderIsAReshape) {
  ExpectCanonical(GatherNd("0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, -1", "[2, 1, 3, 2]"), R"(graph {
    input %x: f32[2, 3]
    const %shape: i64[3] = {2, 1, 3}
    %b: ? = Relu(%x)
    %a: ? = Reshape(%b, %shape) {allowzero = 1}
    output %a
  })");
}

TEST(CanonicalizeTest, AGatherNdOfRowsInOrderIsNothing) {
  ExpectCanonical(GatherNd("0, 1", "[2, 1]"), R"(graph {
    input %x: f32[2, 3]
    %b: ? = Relu(%x)
    output %b
  })");
}

TEST(CanonicalizeTest, AGatherNdOfAnotherOrderOrOfAPartStays) {
  ExpectUnchanged(*Canonicalize(), GatherNd("1, 0", "[2, 1]"));
  ExpectUnchanged(*Canonicalize(), GatherNd("0", "[1, 1]"));
  ExpectUnchanged(*Canonicalize(), GatherNd("0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 1", "[2, 1, 3, 2]"));
}

TEST(CanonicalizeTest, ASliceOfEverythingGoesAndAReversedOneStays) {
  ExpectCanonical(R"(graph {
    input %x: f32[4]
    const %zero: i64[1] = {0}
    const %many: i64[1] = {9223372036854775807}
    %a: ? = Slice(%x, %zero, %many)
    %b: ? = Relu(%a)
    output %b
  })",
                  R"(graph {
    input %x: f32[4]
    %b: ? = Relu(%x)
    output %b
  })");
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[4]
    const %last: i64[1] = {-1}
    const %end: i64[1] = {-9223372036854775807}
    const %zero: i64[1] = {0}
    %a: ? = Slice(%x, %last, %end, %zero, %last)
    output %a
  })");
}

TEST(CanonicalizeTest, AnOverridableConstantIsNoConstant) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2]
    const %zero: f32[] = {0} overridable
    %a: ? = Add(%x, %zero)
    %b: ? = Neg(%zero)
    output %a
    output %b
  })");
}

std::string EinsumGraph(absl::string_view a, absl::string_view b, absl::string_view equation) {
  return absl::StrCat("graph {\n input %a: f32", a, "\n input %b: f32", b,
                      "\n %y: ? = Einsum(%a, %b) {equation = \"", equation, "\"}\n output %y\n}");
}

TEST(CanonicalizeTest, AnEinsumOfTwoIsAProduct) {
  const std::vector<std::vector<std::string>> cases = {
      {"[2, 3, 4]", "[4, 5]", "abc,cd->abd"},
      {"[2, 3, 4]", "[4, 2, 5]", "abc, cde -> abde"},
      {"[2, 3, 4, 5]", "[4, 5, 6]", "abcd,cde->abe"},
      {"[2, 7, 4, 5]", "[2, 3, 4, 5]", "aecd,abcd->acbe"},
      {"[2, 4, 3, 7]", "[2, 7, 4, 5]", "acbe,aecd->abcd"},
      {"[2, 3, 4]", "[2, 5, 4]", "bik,bjk->bij"},
      {"[2, 3, 4]", "[2, 5, 4]", "bik,bjk->jib"},
      {"[3]", "[3, 4]", "i,ij->j"},
  };
  for (const auto& c : cases) {
    const std::string text = EinsumGraph(c[0], c[1], c[2]);
    ExpectSameAnswers(*Canonicalize(), text);
    const Graph graph = Captured(text);
    EXPECT_EQ(CountOps(graph, "Einsum"), c[0] == "[3]" ? 1 : 0) << c[2];
  }
}

TEST(CanonicalizeTest, AnEinsumThatIsNoProductStays) {
  ExpectUnchanged(*Canonicalize(), EinsumGraph("[3, 3]", "[3, 4]", "ii,ij->ij"));
  ExpectUnchanged(*Canonicalize(), EinsumGraph("[3, 4]", "[3, 4]", "ij,ij->ij"));
  ExpectUnchanged(*Canonicalize(), EinsumGraph("[3, 4]", "[4, 5]", "ij,jk->i"));
  ExpectUnchanged(*Canonicalize(), EinsumGraph("[3, 4]", "[5, 6]", "ij,kl->ijkl"));
}

TEST(CanonicalizeTest, ABiasOfHeadsComesBeforeTheirSplit) {
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

TEST(CanonicalizeTest, ContributedOpsBecomeKnownOnes) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    param %b: f32[4] = p0
    %y: ? = com.microsoft.BiasGelu(%x, %b)
    %z: ? = com.microsoft.FastGelu(%y)
    output %z
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    param %b: f32[4] = p0
    %a: ? = Add(%x, %b)
    %y: ? = Gelu(%a) {approximate = "none"}
    %z: ? = Gelu(%y) {approximate = "tanh"}
    output %z
  })");
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3, 4]
    input %skip: f32[2, 3, 4]
    param %gamma: f32[4] = p0
    param %beta: f32[4] = p1
    param %bias: f32[4] = p2
    %y: ?, _, _, %s: ? = com.microsoft.SkipLayerNormalization(%x, %skip, %gamma, %beta, %bias) {epsilon = 1e-05}
    %z: ? = com.microsoft.SkipSimplifiedLayerNormalization(%y, %s, %gamma) {epsilon = 1e-05}
    output %z
  })",
                  R"(graph {
    input %x: f32[2, 3, 4]
    input %skip: f32[2, 3, 4]
    param %gamma: f32[4] = p0
    param %beta: f32[4] = p1
    param %bias: f32[4] = p2
    %a: ? = Add(%x, %skip)
    %s: ? = Add(%a, %bias)
    %y: ? = LayerNormalization(%s, %gamma, %beta) {axis = -1, epsilon = 1e-05}
    %t: ? = Add(%y, %s)
    %z: ? = RMSNormalization(%t, %gamma) {axis = -1, epsilon = 1e-05}
    output %z
  })");
}

TEST(CanonicalizeTest, ASymbolicGraphOfKnownInputsIsLeftToItsCapture) {
  auto graph = Parse(R"(graph {
    input %x: f32[2, 3]
    const %shape: i64[3] = {4, 2, 3}
    const %axes: i64[1] = {0}
    const %indices: i64[2, 1] = {0, 1}
    const %flat: i64[1] = {-1}
    %a: ? = Expand(%x, %shape)
    %b: ? = ReduceSum(%a, %axes)
    %c: ? = GatherND(%x, %indices)
    %d: ? = Transpose(%x)
    %e: ? = Reshape(%x, %flat)
    %f: ? = Softmax(%e)
    %g: ? = Squeeze(%x)
    %h: ? = Add(%a, %x)
    %i: ? = Identity(%h)
    output %b
    output %c
    output %d
    output %f
    output %g
    output %i
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  ASSERT_TRUE(RunLoadPasses(*graph).ok());
  EXPECT_EQ(OpsOf(*graph), "Expand ReduceSum GatherND Transpose Reshape Softmax Squeeze Add");
}

TEST(MergeCommonTest, EqualConstantsParametersAndNodesBecomeOne) {
  ExpectRewrite(*MergeCommon(), R"(graph {
    input %x: f32[2, 3]
    input %y: f32[2, 3]
    param %w: f32[3, 3] = p0
    const %one: f32[] = {1}
    const %uno: f32[] = {1}
    %a: ? = Add(%x, %one)
    %b: ? = Add(%uno, %x)
    %c: ? = Sub(%x, %y)
    %d: ? = Sub(%y, %x)
    %e: ? = MatMul(%a, %w)
    %f: ? = MatMul(%b, %w)
    %g: ? = Add(%e, %f)
    %h: ? = Mul(%c, %d)
    %i: ? = Add(%g, %h)
    output %i
  })",
                R"(graph {
    input %x: f32[2, 3]
    input %y: f32[2, 3]
    param %w: f32[3, 3] = p0
    const %one: f32[] = {1}
    %a: ? = Add(%x, %one)
    %c: ? = Sub(%x, %y)
    %d: ? = Sub(%y, %x)
    %e: ? = MatMul(%a, %w)
    %g: ? = Add(%e, %e)
    %h: ? = Mul(%c, %d)
    %i: ? = Add(%g, %h)
    output %i
  })");
}

TEST(MergeCommonTest, OtherAttributesConstantsOrTypesStay) {
  ExpectUnchanged(*MergeCommon(), R"(graph {
    input %x: f32[2, 3]
    const %one: i64[] = {1}
    const %uno: i64[1] = {1}
    const %zero: f32[] = {0}
    const %minus_zero: f32[] = {-0}
    %a: ? = Softmax(%x) {axis = 0}
    %b: ? = Softmax(%x) {axis = 1}
    %c: ? = ReduceSum(%x, %uno)
    %d: ? = Gather(%x, %one)
    %e: ? = Add(%x, %zero)
    %f: ? = Add(%x, %minus_zero)
    output %a
    output %b
    output %c
    output %d
    output %e
    output %f
  })");
}

TEST(EliminateDeadTest, WhatNoOutputNeedsGoes) {
  ExpectRewrite(*EliminateDead(), R"(graph {
    input %x: f32[2]
    input %unused: f32[2]
    %a: ? = Relu(%x)
    %b: ? = Neg(%a)
    output %a
  })",
                R"(graph {
    input %x: f32[2]
    input %unused: f32[2]
    %a: ? = Relu(%x)
    output %a
  })");
}

TEST(FinalizeOutputsTest, OutputsThatAreNoResultOfTheirOwnGetACopy) {
  ExpectRewrite(*FinalizeOutputs(), R"(graph {
    input %x: f32[2]
    param %w: f32[2] = p0
    const %c: f32[2] = {1, 2}
    const %shape: i64[2] = {2, 1}
    %a: ? = Relu(%x)
    %view: ? = Reshape(%x, %shape)
    %view_of_a: ? = Reshape(%a, %shape)
    output %x
    output %w
    output %c
    output %a
    output %a
    output %view
    output %view_of_a
  })",
                R"(graph {
    input %x: f32[2]
    param %w: f32[2] = p0
    const %c: f32[2] = {1, 2}
    const %shape: i64[2] = {2, 1}
    %a: ? = Relu(%x)
    %view: ? = Reshape(%x, %shape)
    %view_of_a: ? = Reshape(%a, %shape)
    %x2: ? = Identity(%x)
    %w2: ? = Identity(%w)
    %c2: ? = Identity(%c)
    %a2: ? = Identity(%a)
    %view2: ? = Identity(%view)
    %view_of_a2: ? = Identity(%view_of_a)
    output %x2
    output %w2
    output %c2
    output %a
    output %a2
    output %view2
    output %view_of_a2
  })");
}

TEST(FinalizeOutputsTest, AViewOfAResultMayBeAnOutput) {
  ExpectUnchanged(*FinalizeOutputs(), R"(graph {
    input %x: f32[2]
    const %shape: i64[2] = {2, 1}
    %a: ? = Relu(%x)
    %view: ? = Reshape(%a, %shape)
    output %view
  })");
}

TEST(PrepareParametersTest, WhatDependsOnParametersAloneBecomesAnExpression) {
  ExpectRewrite(*PrepareParameters(), R"(graph {
    input %x: f32[2, 16]
    param %q: i8[16, 32] = p0
    const %scale: f32[1] = {0.5}
    %f: ? = Cast(%q) {to = 1}
    %w: ? = Mul(%f, %scale)
    %y: ? = MatMul(%x, %w)
    output %y
  })",
                R"(graph {
    input %x: f32[2, 16]
    param %w: f32[16, 32] = Mul(Cast{to = 1}(p0), f32[1]{0.5})
    %y: ? = MatMul(%x, %w)
    output %y
  })",
                {.tolerance = 0});
}

TEST(PrepareParametersTest, ConstantsAloneAndDataAndOverridableParametersStay) {
  ExpectUnchanged(*PrepareParameters(), R"(graph {
    input %x: f32[2]
    param %w: f32[2] = p0 overridable
    const %c: f32[] = {0.5}
    %a: ? = Neg(%c)
    %b: ? = Add(%x, %w)
    %d: ? = Neg(%w)
    output %a
    output %b
    output %d
  })");
}

TEST(FoldConstantsTest, NodesOverConstantsAndShapesBecomeConstants) {
  ExpectRewrite(*FoldConstants(), R"(graph {
    input %x: f32[2, 3]
    const %one: i64[] = {1}
    const %minus: i64[1] = {-1}
    %shape: ? = Shape(%x)
    %width: ? = Gather(%shape, %one)
    const %axes: i64[1] = {0}
    %widths: ? = Unsqueeze(%width, %axes)
    %target: ? = Concat(%widths, %minus) {axis = 0}
    output %target
  })",
                R"(graph {
    input %x: f32[2, 3]
    const %target: i64[2] = {3, -1}
    output %target
  })");
}

}  // namespace
}  // namespace reprise
