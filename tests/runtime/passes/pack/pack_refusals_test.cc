// Graphs that cannot be packed are refused with the reason and the node's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "tests/runtime/passes/testing/packing_harness.h"

namespace reprise {
namespace {

using testing::HasSubstr;

TEST(PackRefusalsTest, NodesWithoutARuleRefuseByName) {
  ExpectRefused(absl::StrCat(kX, "%y: ? = Softmax(%x) {axis = 1}\noutput %y"),
                "Softmax cannot be packed: it works along an axis that tokens do not keep");
  ExpectRefused(absl::StrCat(kX, "%y: ? = Transpose(%x) {perm = [1, 0, 2]}\noutput %y"),
                "Transpose cannot be packed");
  const auto of_all =
      PackTokens(Symbolic(absl::StrCat(kX, "%y: ? = DynamicQuantizeLinear(%x)\noutput %y")),
                 {.batch = "batch", .sequence = "sequence", .longest = kLongest});
  EXPECT_THAT(std::string(of_all.status().message()),
              HasSubstr("DynamicQuantizeLinear cannot be packed: the op has no packing rule"));
  ExpectRefused(absl::StrCat(kX,
                             "const %i: i64[] = {2}\n%y: ? = Gather(%x, %i) {axis = 1}\n"
                             "output %y"),
                "Gather cannot be packed");
  ExpectRefused(
      "input %x: f32[batch, sequence, 8, 4]\ninput %i: i64[batch, sequence, 1]\n"
      "%y: ? = GatherND(%x, %i) {batch_dims = 2}\noutput %y",
      "GatherND cannot be packed: it picks by data something else than tokens of each row");
  ExpectRefused(absl::StrCat(kX, "%y: ? = ReduceSum(%x)\noutput %y"), "ReduceSum cannot be packed");
}

// A shorter sequence has another last position than the longest.
TEST(PackRefusalsTest, TheLastPositionOfATableRefuses) {
  constexpr absl::string_view kTable = R"(
    param %t: f32[20, 8] = p0
    %used: ? = Slice(%t, %zero1, %len, %zero1)
    )";
  ExpectRefused(absl::StrCat(kX, kLength, kTable, R"(
    const %last: i64[] = {-1}
    %w: ? = Gather(%used, %last)
    %y: ? = Mul(%x, %w)
    output %y)"),
                "depends on no input but on the length");
  EXPECT_TRUE(Pack(absl::StrCat(kX, kLength, kTable, R"(
    const %first: i64[] = {0}
    %w: ? = Gather(%used, %first)
    %y: ? = Mul(%x, %w)
    output %y)"))
                  .ok());
}

TEST(PackRefusalsTest, WhatDependsOnTheLengthItselfRefuses) {
  // x / length: a constant that differs from size to size and is no table.
  ExpectRefused(
      absl::StrCat(kX, kLength, "%n: ? = Cast(%len) {to = 1}\n%y: ? = Div(%x, %n)\noutput %y"),
      "depends on the sizes");
  // The positions from the end.
  ExpectRefused(absl::StrCat(kX, kLength, R"(
    const %zero0: i64[] = {0}
    %row: ? = Range(%zero0, %len0, %one0)
    %left: ? = Sub(%len, %row)
    %l: ? = Cast(%left) {to = 1}
    %w: ? = Unsqueeze(%l, %one1)
    %y: ? = Mul(%x, %w)
    output %y)"),
                "not a table by position");
}

TEST(PackRefusalsTest, InputsAndOutputsWithoutAPackedFormRefuse) {
  ExpectRefused("input %x: f32[sequence, batch]\n%y: ? = Relu(%x)\noutput %y", "input 'x'");
  ExpectRefused(absl::StrCat(kX,
                             "input %k: f32[4]\n%y: ? = Relu(%x)\n%z: ? = Relu(%k)\n"
                             "output %y\noutput %z"),
                "input 'k'");
  ExpectRefused(absl::StrCat(kX, "const %f: i64[2] = {-1, 8}\n%y: ? = Reshape(%x, %f)\noutput %y"),
                "output 0");
}

}  // namespace
}  // namespace reprise
