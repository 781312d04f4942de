#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/quantized/quantized_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

constexpr char kConv[] = R"(
    input %q: u8[2, 3, 5, 4]
    param %w: i8[8, 3, 3, 3] = p0
    const %s: f32[] = {0.5}
    const %t: f32[] = {0.25}
    const %z: i8[] = {-3}
    %c: ? = reprise.IntegerConv(%q, %w, %s, %t) {activation = "relu"}
)";

TEST(FuseRequantizeTest, StepsBehindAConvolutionAreItsResult) {
  const std::string conv = absl::StrCat("graph {", kConv, R"(
    %y: ? = QuantizeLinear(%c, %s, %z)
    output %y
  })");
  ExpectSameAnswers(*FuseRequantize(), conv, kBytes);
  EXPECT_EQ(OpsAfter(*FuseRequantize(), conv), "reprise.IntegerConv");
  const std::string linear = R"(graph {
    input %q: u8[7, 20]
    param %w: i8[20, 30] = p0
    const %s: f32[] = {0.5}
    %c: ? = reprise.IntegerLinear(%q, %w, %s, %s)
    %y: ? = QuantizeLinear(%c, %s)
    output %y
  })";
  ExpectUnchanged(*FuseRequantize(), linear);
}

TEST(FuseRequantizeTest, FloatsOnStepsComeFromBytes) {
  const std::string text = absl::StrCat("graph {", kConv, R"(
    %y: ? = reprise.FakeQuantize(%c, %s, %z)
    output %y
  })");
  ExpectSameAnswers(*FuseRequantize(), text, kBytes);
  EXPECT_EQ(OpsAfter(*FuseRequantize(), text), "reprise.IntegerConv DequantizeLinear");
}

TEST(FuseRequantizeTest, OtherReadersKeepTheFloats) {
  ExpectUnchanged(*FuseRequantize(), absl::StrCat("graph {", kConv, R"(
    %y: ? = QuantizeLinear(%c, %s, %z)
    %n: ? = Neg(%c)
    output %y
    output %n
  })"));
  // Steps of each map, and steps of more than a byte.
  ExpectUnchanged(*FuseRequantize(), absl::StrCat("graph {", kConv, R"(
    input %m: f32[8]
    %y: ? = QuantizeLinear(%c, %m)
    output %y
  })"));
  ExpectUnchanged(*FuseRequantize(), absl::StrCat("graph {", kConv, R"(
    const %i: i16[] = {0}
    %y: ? = QuantizeLinear(%c, %s, %i)
    output %y
  })"));
}

std::string Sum(const std::string& rest, const std::string& shape = "[2, 3, 4]") {
  return absl::StrCat(R"(graph {
    input %p: u8[2, 3, 4]
    input %q: i8)",
                      shape, R"(
    const %s: f32[] = {0.5}
    const %t: f32[1] = {0.25}
    const %z: u8[] = {9}
    %a: ? = DequantizeLinear(%p, %s, %z)
    %b: ? = DequantizeLinear(%q, %t)
    %c: ? = Add(%a, %b)
)",
                      rest, "}");
}

TEST(FuseRequantizeTest, SumsOfBytesAreBytes) {
  const std::string plain = Sum("%y: ? = QuantizeLinear(%c, %t, %z)\noutput %y\n");
  ExpectSameAnswers(*FuseRequantize(), plain, kBytes);
  EXPECT_EQ(OpsAfter(*FuseRequantize(), plain), "reprise.IntegerAdd");
  const std::string activated =
      Sum("%r: ? = Relu(%c)\n%y: ? = reprise.FakeQuantize(%r, %s)\noutput %y\n");
  ExpectSameAnswers(*FuseRequantize(), activated, kBytes);
  EXPECT_EQ(OpsAfter(*FuseRequantize(), activated), "reprise.IntegerAdd DequantizeLinear");
}

TEST(FuseRequantizeTest, OtherSumsStay) {
  ExpectUnchanged(*FuseRequantize(),
                  Sum("%y: ? = QuantizeLinear(%c, %t, %z)\noutput %y\n", "[2, 1, 4]"));
  ExpectUnchanged(*FuseRequantize(),
                  Sum("%y: ? = QuantizeLinear(%c, %t, %z)\noutput %y\noutput %c\n"));
}

}  // namespace
}  // namespace reprise
