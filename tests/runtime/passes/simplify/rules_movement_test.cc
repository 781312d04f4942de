#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(MovementRulesTest, IdentityDropoutAndCastToTheSameTypeGo) {
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

TEST(MovementRulesTest, ACastToAnotherTypeStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3]
    %c: ? = Cast(%x) {to = 7}
    output %c
  })");
}

TEST(MovementRulesTest, ACastLikeIsNotHeldUpByWhatItIsLike) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    input %y: f32[4]
    %a: ? = CastLike(%x, %y)
    %b: ? = Relu(%a)
    output %b
  })",
                  R"(graph {
    input %x: f32[2, 3]
    input %y: f32[4]
    %b: ? = Relu(%x)
    output %b
  })");
  ExpectCanonical(R"(graph {
    input %y: i64[2]
    const %one: f32[2] = {1, 2}
    %a: ? = CastLike(%one, %y)
    %b: ? = Add(%y, %a)
    output %b
  })",
                  R"(graph {
    input %y: i64[2]
    const %a: i64[2] = {1, 2}
    %b: ? = Add(%y, %a)
    output %b
  })");
}

TEST(MovementRulesTest, ViewsInARowBecomeOneReshape) {
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

TEST(MovementRulesTest, ViewsThatEndWhereTheyBeganGo) {
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

TEST(MovementRulesTest, TransposesOfTransposesBecomeOneOrNone) {
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

TEST(MovementRulesTest, ATransposeThatMovesNoElementIsAReshape) {
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

TEST(MovementRulesTest, ATransposeOfABroadcastIsOneOfItsOperands) {
  ExpectRewrite(*Canonicalize(), R"(graph {
    input %a: f32[4, 1]
    input %b: f32[2, 1, 3]
    %p: ? = Sub(%a, %b)
    %y: ? = Transpose(%p) {perm = [0, 2, 1]}
    output %y
  })",
                R"(graph {
    input %a: f32[4, 1]
    input %b: f32[2, 1, 3]
    const %sa: i64[3] = {1, 1, 4}
    const %sb: i64[3] = {2, 3, 1}
    %ra: ? = Reshape(%a, %sa) {allowzero = 1}
    %rb: ? = Reshape(%b, %sb) {allowzero = 1}
    %y: ? = Sub(%ra, %rb)
    output %y
  })");
  // Elements of one operand would move; other nodes read the transposed value.
  for (const char* rest : {"input %b: f32[2, 4, 3]\n%p: ? = Sub(%a, %b)\n",
                           "input %b: f32[2, 1, 3]\n%p: ? = Sub(%a, %b)\noutput %p\n"}) {
    ExpectUnchanged(*Canonicalize(),
                    absl::StrCat("graph {\n input %a: f32[4, 1]\n", rest,
                                 "%y: ? = Transpose(%p) {perm = [0, 2, 1]}\n output %y\n}"));
  }
}

TEST(MovementRulesTest, AnExpandMovesBehindElementwiseNodesAndGoesWhereOthersBroadcast) {
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

TEST(MovementRulesTest, AnExpandThatNothingElseDoesStaysInTheEnd) {
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

TEST(MovementRulesTest, AnExpandWhoseShapeAnElementwiseNodeNeedsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 1, 1]
    param %s: f32[3] = p0
    const %shape: i64[3] = {2, 4, 3}
    %a: ? = Expand(%x, %shape)
    %y: ? = PRelu(%a, %s)
    output %y
  })");
}

TEST(MovementRulesTest, AReductionComesBeforeAnExpandOfOtherDims) {
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

TEST(MovementRulesTest, AReductionOfExpandedDimsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %mask: f32[2, 3, 1]
    const %shape: i64[3] = {2, 3, 4}
    const %axes: i64[2] = {1, 2}
    %wide: ? = Expand(%mask, %shape)
    %count: ? = ReduceSum(%wide, %axes) {keepdims = 0}
    output %count
  })");
}

TEST(MovementRulesTest, ASoftmaxOfFlattenedRowsIsOneOfTheRows) {
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

TEST(MovementRulesTest, ASoftmaxOverSeveralDimsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3, 4]
    const %shape: i64[2] = {2, 12}
    %flat: ? = Reshape(%x, %shape) {allowzero = 1}
    %soft: ? = Softmax(%flat) {axis = 1}
    output %soft
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

TEST(MovementRulesTest, AGatherNdOfEverythingInOrderIsAReshape) {
  ExpectCanonical(GatherNd("0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, -1", "[2, 1, 3, 2]"), R"(graph {
    input %x: f32[2, 3]
    const %shape: i64[3] = {2, 1, 3}
    %b: ? = Relu(%x)
    %a: ? = Reshape(%b, %shape) {allowzero = 1}
    output %a
  })");
}

// `data` is looked up: %flat has rows that were laid end to end, %table is a weight.
std::string GatherOf(absl::string_view data, absl::string_view indices, absl::string_view shape) {
  return absl::StrCat(R"(graph {
    input %x: f32[2, 2, 3]
    param %table: f32[4, 3] = p0
    const %rows: i64[2] = {4, 3}
    const %indices: i64)",
                      shape, " = {", indices, R"(}
    %flat: ? = Reshape(%x, %rows) {allowzero = 1}
    %a: ? = Gather()",
                      data, R"(, %indices) {axis = 0}
    %b: ? = Relu(%flat)
    output %a
    output %b
  })");
}

TEST(MovementRulesTest, AGatherOfRowsEndToEndInOrderIsAReshape) {
  const std::string after = RunPass(*Canonicalize(), GatherOf("%flat", "0, 1, 2, -1", "[2, 1, 2]"));
  EXPECT_EQ(after.find("Gather"), std::string::npos) << after;
}

TEST(MovementRulesTest, AGatherOfATableOfAPartOrInAnotherOrderStays) {
  for (const std::string& text :
       {GatherOf("%table", "0, 1, 2, 3", "[2, 2]"), GatherOf("%flat", "0, 1, 3, 2", "[2, 2]"),
        GatherOf("%flat", "0, 1, 2", "[3, 1]"), GatherOf("%flat", "0, 1, 2, 3", "[4]")}) {
    const std::string after = RunPass(*Canonicalize(), text);
    EXPECT_NE(after.find("Gather"), std::string::npos) << after;
  }
}

TEST(MovementRulesTest, AGatherNdOfRowsInOrderIsNothing) {
  ExpectCanonical(GatherNd("0, 1", "[2, 1]"), R"(graph {
    input %x: f32[2, 3]
    %b: ? = Relu(%x)
    output %b
  })");
}

TEST(MovementRulesTest, AGatherNdOfAnotherOrderOrOfAPartStays) {
  ExpectUnchanged(*Canonicalize(), GatherNd("1, 0", "[2, 1]"));
  ExpectUnchanged(*Canonicalize(), GatherNd("0", "[1, 1]"));
  ExpectUnchanged(*Canonicalize(), GatherNd("0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 1", "[2, 1, 3, 2]"));
}

// Returns the element after the largest of each of three rows, as exporters index by two lists.
std::string FlatRows(absl::string_view starts, absl::string_view rows, absl::string_view places) {
  return absl::StrCat(R"(graph {
    input %x: f32[3, 5, 4]
    input %ids: i64[3, )",
                      rows, R"(]
    input %given: i64[3]
    const %flat: i64[2] = {15, 4}
    const %starts: i64[3] = {)",
                      starts, R"(}
    %lines: ? = Reshape(%x, %flat) {allowzero = 1}
    %best: ? = ArgMax(%ids) {axis = 1, keepdims = 0}
    %at: ? = Add(%)",
                      places, R"(, %starts)
    %y: ? = Gather(%lines, %at)
    output %y
    output %best
  })");
}

TEST(MovementRulesTest, APlaceOfEachRowLaidEndToEndIsLookedUpInItsRow) {
  ExpectCanonical(FlatRows("0, 5, 10", "5", "best"), R"(graph {
    input %x: f32[3, 5, 4]
    input %ids: i64[3, 5]
    input %given: i64[3]
    const %column: i64[2] = {3, 1}
    %best: ? = ArgMax(%ids) {axis = 1, keepdims = 0}
    %places: ? = Reshape(%best, %column) {allowzero = 1}
    %y: ? = GatherND(%x, %places) {batch_dims = 1}
    output %y
    output %best
  })");
}

TEST(MovementRulesTest, PlacesThatMayLieInAnotherRowStay) {
  for (const std::string& text :
       {FlatRows("0, 5, 10", "5", "given"), FlatRows("0, 5, 10", "6", "best"),
        FlatRows("0, 5, 11", "5", "best"), FlatRows("0, 4, 8", "4", "best"),
        FlatRows("5, 10, 15", "5", "best")}) {
    SCOPED_TRACE(text);
    ExpectUnchanged(*Canonicalize(), text);
  }
}

// Picks one element of each row at an index, as exporters index by two lists.
std::string CountedRows(absl::string_view rows, absl::string_view x, absl::string_view more) {
  return absl::StrCat("graph {\n  input %x: f32", x, R"(
    input %place: i64[3, 1]
    const %rows: i64[3, 1] = {)",
                      rows, R"(}
    %at: ? = Concat()",
                      more, R"() {axis = 1}
    %y: ? = GatherND(%x, %at)
    output %y
  })");
}

TEST(MovementRulesTest, APlaceOfEachCountedRowIsLookedUpInItsRow) {
  ExpectCanonical(CountedRows("0, 1, 2", "[3, 5, 4]", "%rows, %place"), R"(graph {
    input %x: f32[3, 5, 4]
    input %place: i64[3, 1]
    %y: ? = GatherND(%x, %place) {batch_dims = 1}
    output %y
  })");
}

TEST(MovementRulesTest, RowsThatAreNotCountedStay) {
  for (const std::string& text : {CountedRows("0, 2, 1", "[3, 5, 4]", "%rows, %place"),
                                  CountedRows("0, 1, 2", "[4, 5, 4]", "%rows, %place"),
                                  CountedRows("0, 1, 2", "[3, 5, 4]", "%place, %rows")}) {
    SCOPED_TRACE(text);
    ExpectUnchanged(*Canonicalize(), text);
  }
}

std::string Pieces(absl::string_view places, absl::string_view wide) {
  return absl::StrCat("graph {\n  input %x: f32[3, 5, 4]\n  input %place: i64", places,
                      "\n  const %wide: i64[3] = {", wide, R"(}
    %at: ? = Expand(%place, %wide)
    %y: ? = GatherElements(%x, %at) {axis = 1}
    output %y
  })");
}

TEST(MovementRulesTest, ElementsThatAreWholePiecesAreLookedUpAsPieces) {
  ExpectCanonical(Pieces("[3, 2, 1]", "3, 2, 4"), R"(graph {
    input %x: f32[3, 5, 4]
    input %place: i64[3, 2, 1]
    %y: ? = GatherND(%x, %place) {batch_dims = 1}
    output %y
  })");
}

TEST(MovementRulesTest, ElementsOfPartsOfPiecesOrOfOneRowForAllStay) {
  for (const std::string& text : {Pieces("[3, 2, 1]", "3, 2, 3"), Pieces("[1, 2, 4]", "3, 2, 4"),
                                  Pieces("[1, 2, 1]", "3, 2, 4"), Pieces("[2, 2, 1]", "2, 2, 4")}) {
    SCOPED_TRACE(text);
    ExpectUnchanged(*Canonicalize(), text);
  }
}

TEST(MovementRulesTest, ASliceOfEverythingGoesAndAReversedOneStays) {
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

}  // namespace
}  // namespace reprise
