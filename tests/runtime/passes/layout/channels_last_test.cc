#include <string>

#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/layout/layout_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

TEST(ChannelsLastTest, ConvolutionsInARowHandOnChannelsLast) {
  const std::string text = R"(graph {
    input %q: u8[2, 8, 5, 4]
    input %r: f32[2, 9, 5, 4]
    param %v: i8[8, 8, 3, 3] = p0
    param %w: i8[9, 8, 1, 1] = p1
    const %s: f32[] = {0.5}
    const %z: u8[] = {7}
    %c: ? = reprise.IntegerConv(%q, %v, %s, %s, %z, _, _, _, %s, %z) {pads = [1, 1, 1, 1]}
    %y: ? = reprise.IntegerConv(%c, %w, %s, %s, %z, _, _, %r) {activation = "relu"}
    output %y
  })";
  ExpectSameAnswers(*ChannelsLast(), text, kBytes);
  EXPECT_EQ(OpsAfter(*ChannelsLast(), text),
            "Transpose reprise.IntegerConv Transpose reprise.IntegerConv Transpose");
}

TEST(ChannelsLastTest, PlanesOfFewChannelsAreReadWhereTheyAre) {
  const std::string text = R"(graph {
    input %q: u8[2, 3, 5, 4]
    param %w: i8[9, 3, 3, 3] = p0
    const %s: f32[] = {0.5}
    %y: ? = reprise.IntegerConv(%q, %w, %s, %s)
    output %y
  })";
  ExpectSameAnswers(*ChannelsLast(), text, kBytes);
  EXPECT_EQ(OpsAfter(*ChannelsLast(), text), "reprise.IntegerConv Transpose");
}

// A block of a residual network as exporters quantise it.
TEST(ChannelsLastTest, PoolsAndSumsBetweenConvolutionsStayBytes) {
  const std::string text = R"(graph {
    input %q: u8[2, 3, 12, 10]
    param %u: f32[16, 3, 3, 3] = DequantizeLinear{axis = 0}(i8[16, 3, 3, 3] p0, f32[16] p1)
    param %v: f32[16, 16, 3, 3] = DequantizeLinear{axis = 0}(i8[16, 16, 3, 3] p2, f32[16] p3)
    param %w: f32[16, 16, 1, 1] = DequantizeLinear{axis = 0}(i8[16, 16, 1, 1] p4, f32[16] p5)
    const %s: f32[] = {0.5}
    const %t: f32[] = {40.0}
    const %z: u8[] = {7}
    %x: ? = DequantizeLinear(%q, %s, %z)
    %c: ? = Conv(%x, %u) {pads = [1, 1, 1, 1]}
    %c8: ? = QuantizeLinear(%c, %t, %z)
    %cf: ? = DequantizeLinear(%c8, %t, %z)
    %p: ? = MaxPool(%cf) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
    %p8: ? = QuantizeLinear(%p, %t, %z)
    %pf: ? = DequantizeLinear(%p8, %t, %z)
    %d: ? = Conv(%pf, %v) {pads = [1, 1, 1, 1]}
    %d8: ? = QuantizeLinear(%d, %t, %z)
    %df: ? = DequantizeLinear(%d8, %t, %z)
    %a: ? = Add(%df, %pf)
    %r: ? = Relu(%a)
    %r8: ? = QuantizeLinear(%r, %t, %z)
    %rf: ? = DequantizeLinear(%r8, %t, %z)
    %e: ? = Conv(%rf, %w)
    %y: ? = QuantizeLinear(%e, %t, %z)
    output %y
  })";
  // A sum that another order of floats rounds otherwise is another step.
  ExpectSameAnswersAfterCapture(text, {.tolerance = 1, .integer_limit = 100});
  const Graph graph = Captured(text);
  EXPECT_EQ(CountOps(graph, "reprise.IntegerConv"), 3);
  EXPECT_EQ(CountOps(graph, "reprise.IntegerAdd"), 1);
  EXPECT_EQ(CountOps(graph, "MaxPool"), 1);
  for (const char* floats : {"QuantizeLinear", "DequantizeLinear", "reprise.FakeQuantize"}) {
    EXPECT_EQ(CountOps(graph, floats), 0) << floats;
  }
  EXPECT_EQ(CountOps(graph, "Transpose"), 1);  // the result is transposed
}

// Nodes that a detector has between its convolutions.
TEST(ChannelsLastTest, PartsFunctionsAndSamplesOfBytesHaveChannelsLastToo) {
  const std::string text = R"(graph {
    input %q: u8[2, 8, 6, 4]
    param %v: i8[16, 8, 3, 3] = p0
    param %w: i8[9, 40, 1, 1] = p1
    const %s: f32[] = {0.5}
    const %t: f32[] = {40.0}
    const %z: u8[] = {7}
    const %f: f32[4] = {1.0, 1.0, 2.0, 2.0}
    const %g: f32[4] = {1.0, 1.0, 0.5, 0.5}
    const %from: i64[1] = {1}
    const %to: i64[1] = {9}
    const %axis: i64[1] = {-3}
    %c: ? = reprise.IntegerConv(%q, %v, %s, %s, %z, _, _, _, %t, %z) {pads = [1, 1, 1, 1]}
    %x: ? = DequantizeLinear(%c, %t, %z)
    %h: ? = HardSwish(%x)
    %hq: ? = QuantizeLinear(%h, %t, %z)
    %hx: ? = DequantizeLinear(%hq, %t, %z)
    %a: ?, %b: ? = Split(%hx) {axis = 1, num_outputs = 2}
    %aq: ? = QuantizeLinear(%a, %t, %z)
    %bq: ? = QuantizeLinear(%b, %t, %z)
    %ax: ? = DequantizeLinear(%aq, %t, %z)
    %bx: ? = DequantizeLinear(%bq, %t, %z)
    %l: ? = Slice(%hx, %from, %to, %axis)
    %lq: ? = QuantizeLinear(%l, %t, %z)
    %lx: ? = DequantizeLinear(%lq, %t, %z)
    %m: ? = MaxPool(%hx) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
    %mq: ? = QuantizeLinear(%m, %t, %z)
    %mx: ? = DequantizeLinear(%mq, %t, %z)
    %k: ? = Concat(%mx, %ax, %lx, %bx) {axis = 1}
    %kq: ? = QuantizeLinear(%k, %t, %z)
    %kx: ? = DequantizeLinear(%kq, %t, %z)
    %u: ? = Resize(%kx, _, %f) {coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
    %d: ? = Resize(%u, _, %g)
    %dq: ? = QuantizeLinear(%d, %t, %z)
    %y: ? = reprise.IntegerConv(%dq, %w, %t, %s, %z, _, _, _, %t, %z)
    output %y
  })";
  // A sum that another order of floats rounds otherwise is another step.
  ExpectSameAnswersAfterCapture(text, {.tolerance = 1, .integer_limit = 256});
  const Graph graph = Captured(text);
  for (const char* floats : {"QuantizeLinear", "DequantizeLinear", "reprise.FakeQuantize"}) {
    EXPECT_EQ(CountOps(graph, floats), 0) << floats;
  }
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);  // input and result are transposed
}

TEST(ChannelsLastTest, PoolsOfBytesWithAScaleForEachChannelStay) {
  const std::string text = R"(graph {
    input %q: u8[2, 3, 12, 10]
    const %s: f32[3] = {0.5, -1, 2}
    %x: ? = DequantizeLinear(%q, %s) {axis = 1}
    %y: ? = MaxPool(%x) {kernel_shape = [2, 2]}
    output %y
  })";
  ExpectUnchanged(*ChannelsLast(), text);
  ExpectSameAnswersAfterCapture(text, kBytes);
}

TEST(ChannelsLastTest, PoolsOfFloatsStay) {
  ExpectUnchanged(*ChannelsLast(), R"(graph {
    input %q: u8[2, 3, 12, 10]
    const %s: f32[] = {0.5}
    %x: ? = DequantizeLinear(%q, %s)
    %y: ? = MaxPool(%x) {kernel_shape = [2, 2]}
    output %y
  })");
}

}  // namespace
}  // namespace reprise
