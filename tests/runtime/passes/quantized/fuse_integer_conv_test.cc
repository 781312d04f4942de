#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/quantized/quantized_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Returns the form that exporters write; `weights` makes %w of them.
std::string Quantised(const std::string& weights, const std::string& attributes = "") {
  return absl::StrCat(R"(graph {
    input %q: u8[2, 3, 5, 4]
    const %s: f32[] = {0.02}
    const %z: u8[] = {7}
    %x: ? = DequantizeLinear(%q, %s, %z)
  )",
                      weights, R"(
    param %b: f32[8] = p9
    %c: ? = Conv(%x, %w, %b) {pads = [1, 1, 1, 1])",
                      attributes, R"(}
    %y: ? = Relu(%c)
    output %y
  })");
}

std::string Weights(const std::string& shape, const std::string& inputs) {
  return absl::StrCat("param %w: f32", shape, " = DequantizeLinear{axis = 0}(", inputs, ")");
}

TEST(FuseIntegerConvTest, DequantisedOperandsAreMultipliedAsBytes) {
  for (const std::string& weights :
       {Weights("[8, 3, 3, 3]", "i8[8, 3, 3, 3] p0, f32[8] p1, i8[8] p2"),
        Weights("[8, 3, 3, 3]", "u8[8, 3, 3, 3] p0, f32[1] p1, u8[1] p2"),
        Weights("[8, 3, 3, 3]", "i8[8, 3, 3, 3] p0, f32[8] p1")}) {
    SCOPED_TRACE(weights);
    const std::string text = Quantised(weights);
    ExpectSameAnswers(*FuseIntegerConv(), text, kBytes);
    EXPECT_EQ(OpsAfter(*FuseIntegerConv(), text), "reprise.IntegerConv Relu");
    ExpectSameAnswersAfterCapture(text, kBytes);
    EXPECT_EQ(OpsOf(Captured(text)), "reprise.IntegerConv Transpose");
  }
}

TEST(FuseIntegerConvTest, ResidualAndActivationJoin) {
  const std::string text = R"(graph {
    input %q: u8[2, 3, 5, 4]
    input %r: f32[2, 8, 3, 2]
    const %s: f32[] = {0.02}
    %x: ? = DequantizeLinear(%q, %s)
    param %w: f32[8, 3, 3, 3] = DequantizeLinear{axis = 0}(i8[8, 3, 3, 3] p0, f32[8] p1)
    %c: ? = Conv(%x, %w)
    %a: ? = Add(%c, %r)
    %y: ? = LeakyRelu(%a) {alpha = 0.25}
    output %y
  })";
  ExpectSameAnswersAfterCapture(text, kBytes);
  EXPECT_EQ(CountOps(Captured(text), "reprise.IntegerConv"), 1);
  EXPECT_EQ(CountOps(Captured(text), "Add") + CountOps(Captured(text), "LeakyRelu"), 0);
}

TEST(FuseIntegerConvTest, ManyChannelsByThemselvesAreMultipliedAsBytes) {
  const std::string text = R"(graph {
    input %q: u8[2, 16, 5, 4]
    const %s: f32[] = {0.02}
    %x: ? = DequantizeLinear(%q, %s)
    param %w: f32[16, 1, 3, 3] = DequantizeLinear{axis = 0}(i8[16, 1, 3, 3] p0, f32[16] p1)
    %y: ? = Conv(%x, %w) {group = 16}
    output %y
  })";
  ExpectSameAnswers(*FuseIntegerConv(), text, kBytes);
  EXPECT_EQ(OpsAfter(*FuseIntegerConv(), text), "reprise.IntegerConv");
}

TEST(FuseIntegerConvTest, OtherFormsStayFloats) {
  for (const std::string& text :
       {// Scales that belong to channels.
        Quantised("param %w: f32[8, 3, 3, 3] = DequantizeLinear{axis = 1}(i8[8, 3, 3, 3] p0, "
                  "f32[3] p1)"),
        Quantised("param %w: f32[8, 3, 3, 3] = p0")}) {
    SCOPED_TRACE(text);
    ExpectUnchanged(*FuseIntegerConv(), text);
  }
  // Few maps a group.
  ExpectUnchanged(*FuseIntegerConv(), R"(graph {
    input %q: u8[2, 8, 5, 4]
    const %s: f32[] = {0.02}
    %x: ? = DequantizeLinear(%q, %s)
    param %w: f32[8, 1, 3, 3] = DequantizeLinear{axis = 0}(i8[8, 1, 3, 3] p0, f32[8] p1)
    %y: ? = Conv(%x, %w) {group = 8}
    output %y
  })");
}

}  // namespace
}  // namespace reprise
