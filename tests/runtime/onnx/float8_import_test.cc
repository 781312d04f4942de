#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/import_test_util.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Numbers of TensorProto.DataType, which libonnx has no names for.
constexpr int kE4M3FN = 17, kE5M2 = 19;

ModelBuilder WithWeights(int type = kE4M3FN) {
  ModelBuilder b(21);
  b.Input("x", {"n", "2"}).Output("y");
  b.Initializer<uint8_t>("w", type, {2, 2}, {0x38, 0x40, 0x48, 0x50});
  b.Floats("scale", {2}, {1, 10});
  return b;
}

TEST(Float8ImportTest, WeightsAreBitsThatADequantisationReads) {
  ModelBuilder b = WithWeights();
  b.Initializer<uint8_t>("zero", kE4M3FN, {2}, {0, 0x80});  // 0 and -0
  b.Node("DequantizeLinear", {"w", "scale", "zero"}, {"d"}, "q");
  SetAttribute(*b.graph().mutable_node(0), "axis", int64_t{0});
  b.Node("MatMul", {"x", "d"}, {"y"}, "m");
  const std::string text = Text(b);
  EXPECT_THAT(text,
              AllOf(HasSubstr("const %w: u8[2, 2]"), HasSubstr("reprise.DequantizeFloat8(%w, "),
                    HasSubstr("axis = 0"), HasSubstr("form = 17")));
}

TEST(Float8ImportTest, TheyMayBeMovedAndCast) {
  ModelBuilder b = WithWeights(kE5M2);
  b.Node("Transpose", {"w"}, {"t"});
  auto& cast = b.Node("Cast", {"t"}, {"d"}, "c");
  SetAttribute(cast, "to", int64_t{onnx::TensorProto::FLOAT16});
  auto& back = b.Node("Cast", {"d"}, {"f"}, "f");
  SetAttribute(back, "to", int64_t{onnx::TensorProto::FLOAT});
  b.Node("MatMul", {"x", "f"}, {"y"}, "m");
  EXPECT_THAT(Text(b),
              AllOf(HasSubstr("reprise.FromFloat8(%t) {form = 19}"), HasSubstr("{to = 10}")));
}

TEST(Float8ImportTest, NumbersAreRoundedToThem) {
  ModelBuilder b = WithWeights();
  b.Initializer<uint8_t>("zero", kE4M3FN, {}, {0});
  b.Floats("one", {}, {0.5f});
  b.Node("QuantizeLinear", {"x", "one", "zero"}, {"q"}, "q");
  b.Node("DequantizeLinear", {"q", "one", "zero"}, {"d"}, "d");
  auto& cast = b.Node("Cast", {"d"}, {"c"}, "c");
  SetAttribute(cast, "to", int64_t{kE5M2});
  SetAttribute(cast, "saturate", int64_t{0});
  auto& back = b.Node("CastLike", {"c", "x"}, {"y"}, "l");
  (void)back;
  EXPECT_THAT(Text(b), AllOf(HasSubstr("reprise.QuantizeFloat8("),
                             HasSubstr("reprise.DequantizeFloat8(%q, "),
                             HasSubstr("{form = 19, saturate = 0}"),
                             HasSubstr("reprise.FromFloat8(%c) {form = 19}")));
}

TEST(Float8ImportTest, WhatThereIsNotIsRefusedByName) {
  ModelBuilder b = WithWeights();
  b.Node("MatMul", {"x", "w"}, {"y"}, "product");
  EXPECT_THAT(Unimplemented(b),
              AllOf(HasSubstr("'product'"), HasSubstr("input 1 is float8e4m3fn")));

  ModelBuilder output = WithWeights();
  output.Node("Identity", {"w"}, {"y"});
  EXPECT_THAT(Unimplemented(output), HasSubstr("output 'y': is float8e4m3fn"));

  ModelBuilder input(21);
  input.Input("x", {"2"}, kE5M2).Output("y");
  SetAttribute(input.Node("Cast", {"x"}, {"y"}), "to", int64_t{1});
  EXPECT_THAT(Unimplemented(input), HasSubstr("float8e5m2 is not supported"));

  ModelBuilder point = WithWeights();
  point.Initializer<uint8_t>("zero", kE4M3FN, {2}, {0, 0x38});
  point.Node("DequantizeLinear", {"w", "scale", "zero"}, {"d"}, "q");
  point.Node("MatMul", {"x", "d"}, {"y"}, "m");
  EXPECT_THAT(Unimplemented(point), HasSubstr("a zero point of float8 that is not known to be 0"));

  ModelBuilder other = WithWeights();
  other.Initializer<uint8_t>("zero", kE5M2, {2}, {0, 0});
  other.Node("DequantizeLinear", {"w", "scale", "zero"}, {"d"}, "q");
  other.Node("MatMul", {"x", "d"}, {"y"}, "m");
  EXPECT_THAT(InvalidArgument(other), HasSubstr("the zero point is not float8e4m3fn"));
}

}  // namespace
}  // namespace reprise
