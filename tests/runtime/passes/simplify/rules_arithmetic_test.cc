#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(ArithmeticRulesTest, NeutralOperandsGo) {
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

TEST(ArithmeticRulesTest, ANeutralOperandThatBroadcastsOrComesFirstStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[3]
    const %zeros: f32[2, 3] = {0, 0, 0, 0, 0, 0}
    const %zero: f32[] = {0}
    %a: ? = Add(%x, %zeros)
    %b: ? = Sub(%zero, %a)
    output %b
  })");
}

TEST(ArithmeticRulesTest, FloatDivisionByAConstantBecomesAProduct) {
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

TEST(VariadicRulesTest, SumsMeansAndExtremesOfSeveralBecomeThoseOfTwo) {
  ExpectCanonical(R"(graph {
    input %x: f32[2, 3]
    input %y: f32[3]
    input %z: f32[2, 1]
    %a: ? = Sum(%x, %y, %z)
    %b: ? = Mean(%a, %x)
    %c: ? = Max(%b, %y, %z)
    %d: ? = Min(%c, %y)
    output %d
  })",
                  R"(graph {
    input %x: f32[2, 3]
    input %y: f32[3]
    input %z: f32[2, 1]
    const %half: f32[] = {0.5}
    %s: ? = Add(%x, %y)
    %a: ? = Add(%s, %z)
    %t: ? = Add(%a, %x)
    %b: ? = Mul(%t, %half)
    %m: ? = Max(%b, %y)
    %c: ? = Max(%m, %z)
    %d: ? = Min(%c, %y)
    output %d
  })");
}

TEST(VariadicRulesTest, AMeanOfOtherFloatsStays) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f64[2, 3]
    input %y: f64[3]
    %a: ? = Mean(%x, %y)
    output %a
  })");
}

TEST(MishRulesTest, AProductWithTheTangentOfASoftplusIsMish) {
  for (const char* product : {"Mul(%x, %t)", "Mul(%t, %x)"}) {
    ExpectCanonical(absl::StrCat(R"(graph {
    input %x: f32[2, 3]
    %s: ? = Softplus(%x)
    %t: ? = Tanh(%s)
    %y: ? = )",
                                 product, R"(
    output %y
  })"),
                    R"(graph {
    input %x: f32[2, 3]
    %y: ? = Mish(%x)
    output %y
  })");
  }
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2, 3]
    input %z: f32[2, 3]
    %s: ? = Softplus(%x)
    %t: ? = Tanh(%s)
    %y: ? = Mul(%z, %t)
    output %y
  })");
}

TEST(ArithmeticRulesTest, IntegerDivisionAndDivisionByZeroStay) {
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

TEST(ArithmeticRulesTest, ConstantConditionsChoose) {
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

TEST(ArithmeticRulesTest, AConditionOfBothKindsStays) {
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

TEST(ArithmeticRulesTest, AnOverridableConstantIsNoConstant) {
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %x: f32[2]
    const %zero: f32[] = {0} overridable
    %a: ? = Add(%x, %zero)
    %b: ? = Neg(%zero)
    output %a
    output %b
  })");
}

}  // namespace
}  // namespace reprise
