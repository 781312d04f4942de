// Functions of single bytes, and nodes that only move bytes, between quantised nodes.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/quantized/quantized_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

constexpr SameAnswersOptions kSameBytes = {.tolerance = 0, .integer_limit = 256};

// `rest` of bytes %q as floats %x.
std::string OfBytes(const std::string& rest) {
  return absl::StrCat(R"(graph {
    input %q: u8[2, 4, 6, 5]
    const %s: f32[] = {0.05}
    const %t: f32[1] = {0.02}
    const %p: u8[] = {90}
    const %n: i8[] = {-7}
    %x: ? = DequantizeLinear(%q, %s, %p)
)",
                      rest, "}");
}

void ExpectOps(const std::string& rest, const std::string& ops) {
  const std::string text = OfBytes(rest);
  ExpectSameAnswers(*FuseRequantize(), text, kSameBytes);
  EXPECT_EQ(OpsAfter(*FuseRequantize(), text), ops);
}

TEST(ByteFunctionTest, StepsOfAnActivationAreLookedUp) {
  ExpectOps("%h: ? = Tanh(%x)\n%y: ? = QuantizeLinear(%h, %t, %n)\noutput %y\n",
            "reprise.ByteTable");
  ExpectOps("%h: ? = Sigmoid(%x)\n%y: ? = reprise.FakeQuantize(%h, %t, %n)\noutput %y\n",
            "reprise.ByteTable DequantizeLinear");
}

TEST(ByteFunctionTest, GatesThatAreQuantisedInBetweenAreOneTable) {
  ExpectOps(R"(
    const %c: f32[1, 1, 1] = {0.75}
    %g: ? = Sigmoid(%x)
    %r: ? = reprise.FakeQuantize(%g, %t, %n)
    %m: ? = Mul(%x, %r)
    %a: ? = Add(%m, %c)
    %y: ? = QuantizeLinear(%a, %s, %p)
    output %y
)",
            "reprise.ByteTable");
}

TEST(ByteFunctionTest, StepsOfTheSameScaleAreTheBytes) {
  ExpectOps("%h: ? = reprise.FakeQuantize(%x, %s, %p)\n%g: ? = Neg(%h)\noutput %g\n",
            "DequantizeLinear Neg");
  ExpectOps("%h: ? = QuantizeLinear(%x, %t, %n)\noutput %h\n", "reprise.ByteTable");
}

TEST(ByteFunctionTest, WhatMixesElementsIsNoTable) {
  // Functions of two values, of a broadcast one, along an axis, with unknown steps.
  for (const char* rest : {
           "input %r: f32[2, 4, 6, 5]\n%m: ? = Mul(%x, %r)\n%y: ? = QuantizeLinear(%m, %t)",
           "const %r: f32[5] = {1, 2, 3, 4, 5}\n%m: ? = Mul(%x, %r)\n"
           "%y: ? = QuantizeLinear(%m, %t)",
           "%m: ? = Softmax(%x)\n%y: ? = QuantizeLinear(%m, %t)",
           "input %u: f32[]\n%m: ? = Tanh(%x)\n%y: ? = QuantizeLinear(%m, %u)",
           "const %u: f32[5] = {1, 2, 3, 4, 5}\n%m: ? = Tanh(%x)\n"
           "%y: ? = QuantizeLinear(%m, %u) {axis = -1}",
       }) {
    ExpectUnchanged(*FuseRequantize(), OfBytes(absl::StrCat(rest, "\noutput %y\n")));
  }
}

TEST(ByteFunctionTest, PartsTakeTheStepsOfTheWhole) {
  ExpectOps(R"(
    input %r: i8[2, 3, 6, 5]
    %z: ? = DequantizeLinear(%r, %t, %n)
    %c: ? = Concat(%x, %z, %x) {axis = 1}
    %y: ? = QuantizeLinear(%c, %s, %p)
    output %y
)",
            "reprise.ByteTable Concat");
  // A part of floats.
  ExpectUnchanged(*FuseRequantize(), OfBytes(R"(
    input %r: f32[2, 3, 6, 5]
    %c: ? = Concat(%x, %r) {axis = 1}
    %y: ? = QuantizeLinear(%c, %s, %p)
    output %y
)"));
}

TEST(ByteFunctionTest, BytesAreMovedAsBytes) {
  ExpectOps(R"(
    %a: ?, %b: ? = Split(%x) {axis = 1, num_outputs = 2}
    %c: ? = QuantizeLinear(%a, %s, %p)
    %d: ? = QuantizeLinear(%b, %t, %n)
    output %c
    output %d
)",
            "Split reprise.ByteTable");
  ExpectOps(R"(
    const %f: f32[4] = {1.0, 1.0, 2.0, 2.0}
    %a: ? = Resize(%x, _, %f)
    %b: ? = MaxPool(%a) {kernel_shape = [2, 2]}
    %y: ? = QuantizeLinear(%b, %s, %p)
    output %y
)",
            "Resize MaxPool");
  // Samples between elements, and a scale that turns the order around.
  ExpectUnchanged(*FuseRequantize(), OfBytes(R"(
    const %f: f32[4] = {1.0, 1.0, 2.0, 2.0}
    %a: ? = Resize(%x, _, %f) {mode = "linear"}
    %y: ? = QuantizeLinear(%a, %s, %p)
    output %y
)"));
  ExpectUnchanged(*FuseRequantize(), R"(graph {
    input %q: u8[2, 4, 6, 5]
    const %s: f32[] = {-0.05}
    %x: ? = DequantizeLinear(%q, %s)
    %m: ? = MaxPool(%x) {kernel_shape = [2, 2]}
    %y: ? = QuantizeLinear(%m, %s)
    output %y
  })");
}

TEST(ByteFunctionTest, FloatsThatAreReadAsSuchStay) {
  ExpectUnchanged(*FuseRequantize(), OfBytes(R"(
    %a: ? = Transpose(%x) {perm = [0, 2, 3, 1]}
    %y: ? = Softmax(%a)
    output %y
)"));
}

}  // namespace
}  // namespace reprise
