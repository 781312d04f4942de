#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/quantized/quantized_passes.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

// Sums of many products of bytes are large.
constexpr SameAnswersOptions kSums = {.relative = 1e-5, .integer_limit = 100};

TEST(FuseIntegerLinearTest, DynamicProductsOfEveryOrder) {
  const char* const kScaled[] = {
      "%s: ? = Mul(%as, %bs)\n%y: ? = Mul(%c, %s)",
      "%s: ? = Mul(%bs, %as)\n%y: ? = Mul(%s, %c)",
      "%t: ? = Mul(%c, %as)\n%y: ? = Mul(%t, %bs)",
      "%t: ? = Mul(%bs, %c)\n%y: ? = Mul(%as, %t)",
  };
  for (const char* bytes : {"u8", "i8"}) {
    for (const char* columns : {"[]", "[1]", "[5]"}) {
      for (const char* scaled : kScaled) {
        const auto text = [&](absl::string_view nodes) {
          return absl::StrReplaceAll(absl::StrCat(R"(graph {
            input %x: f32[2, 3, 4]
            param %w: BYTES[4, 5] = p0
            param %bs: f32COLUMNS = p1
            param %bz: BYTESCOLUMNS = p2
            %a: ?, %as: ?, %az: ? = DynamicQuantizeLinear(%x)
            )",
                                                  nodes, "\noutput %y\n}"),
                                     {{"BYTES", bytes}, {"COLUMNS", columns}});
        };
        ExpectRewrite(
            *FuseIntegerLinear(),
            text(absl::StrCat(
                "%i: ? = MatMulInteger(%a, %w, %az, %bz)\n%c: ? = Cast(%i) {to = 1}\n", scaled)),
            text("%y: ? = reprise.IntegerLinear(%a, %w, %as, %bs, %az, %bz) {activation = "
                 "\"none\"}"),
            kSums);
      }
    }
  }
}

TEST(FuseIntegerLinearTest, ZeroPointsThatAreZeroAndScalesThatAreOneGo) {
  ExpectRewrite(*FuseIntegerLinear(), R"(graph {
    input %a: i8[3, 4]
    param %w: i8[4, 5] = p0
    const %az: i8[] = {0}
    const %bz: i8[5] = {0, 0, 0, 0, 0}
    %i: ? = MatMulInteger(%a, %w, %az, %bz)
    %y: ? = Cast(%i) {to = 1}
    output %y
  })",
                R"(graph {
    input %a: i8[3, 4]
    param %w: i8[4, 5] = p0
    const %one: f32[] = {1}
    const %two: f32[] = {1}
    %y: ? = reprise.IntegerLinear(%a, %w, %one, %two) {activation = "none"}
    output %y
  })",
                kSums);
}

TEST(FuseIntegerLinearTest, RowsMayHaveTheirOwn) {
  ExpectRewrite(*FuseIntegerLinear(), R"(graph {
    input %a: u8[2, 3, 4]
    input %as: f32[2, 3, 1]
    input %az: u8[]
    param %w: i8[4, 5] = p0
    const %bs: f32[] = {0.5}
    %i: ? = MatMulInteger(%a, %w, %az)
    %c: ? = Cast(%i) {to = 1}
    %s: ? = Mul(%as, %bs)
    %y: ? = Mul(%c, %s)
    output %y
  })",
                R"(graph {
    input %a: u8[2, 3, 4]
    input %as: f32[2, 3, 1]
    input %az: u8[]
    param %w: i8[4, 5] = p0
    const %bs: f32[] = {0.5}
    %y: ? = reprise.IntegerLinear(%a, %w, %as, %bs, %az) {activation = "none"}
    output %y
  })",
                kSums);
  // ONNX gives zero points of rows one dim.
  ExpectRewrite(*FuseIntegerLinear(), R"(graph {
    input %a: u8[3, 4]
    const %az: u8[3] = {1, 2, 3}
    param %w: i8[4, 5] = p0
    const %s: f32[] = {0.5}
    %i: ? = MatMulInteger(%a, %w, %az)
    %c: ? = Cast(%i) {to = 1}
    %y: ? = Mul(%c, %s)
    output %y
  })",
                R"(graph {
    input %a: u8[3, 4]
    param %w: i8[4, 5] = p0
    const %s: f32[] = {0.5}
    const %z: u8[3, 1] = {1, 2, 3}
    const %one: f32[] = {1}
    %y: ? = reprise.IntegerLinear(%a, %w, %one, %s, %z) {activation = "none"}
    output %y
  })",
                kSums);
}

TEST(FuseIntegerLinearTest, NearlyADynamicProductStays) {
  const auto graph = [](absl::string_view body) { return absl::StrCat("graph {\n", body, "\n}"); };
  for (const char* body : {
           // The right side is data.
           "input %a: u8[3, 4]\ninput %w: i8[4, 5]\n%i: ? = MatMulInteger(%a, %w)\n"
           "%y: ? = Cast(%i) {to = 1}\noutput %y",
           // Several matrices.
           "input %a: u8[2, 3, 4]\nparam %w: i8[2, 4, 5] = p0\n%i: ? = MatMulInteger(%a, %w)\n"
           "%y: ? = Cast(%i) {to = 1}\noutput %y",
           // The sums are read by others, or returned.
           "input %a: u8[3, 4]\nparam %w: i8[4, 5] = p0\n%i: ? = MatMulInteger(%a, %w)\n"
           "%c: ? = Cast(%i) {to = 1}\n%d: ? = Cast(%i) {to = 7}\noutput %c\noutput %d",
           "input %a: u8[3, 4]\nparam %w: i8[4, 5] = p0\n%i: ? = MatMulInteger(%a, %w)\n"
           "%c: ? = Cast(%i) {to = 1}\noutput %i\noutput %c",
           // Another dtype.
           "input %a: u8[3, 4]\nparam %w: i8[4, 5] = p0\n%i: ? = MatMulInteger(%a, %w)\n"
           "%c: ? = Cast(%i) {to = 11}\noutput %c",
           // Zero points of the rows of each matrix, which no result of rows has.
           "input %a: u8[2, 3, 4]\ninput %z: u8[3]\nparam %w: i8[4, 5] = p0\n"
           "%i: ? = MatMulInteger(%a, %w, %z)\n%c: ? = Cast(%i) {to = 1}\noutput %c",
       }) {
    ExpectUnchanged(*FuseIntegerLinear(), graph(body));
  }
}

TEST(FuseIntegerLinearTest, FactorsThatAreNoScalesStayOutside) {
  const auto count_mul = [](absl::string_view factor) {
    const std::string text =
        absl::StrCat("graph {\ninput %a: u8[5, 4]\nparam %w: i8[4, 5] = p0\n", factor, R"(
      %i: ? = MatMulInteger(%a, %w)
      %c: ? = Cast(%i) {to = 1}
      %y: ? = Mul(%c, %f)
      output %y
    })");
    ExpectSameAnswers(*FuseIntegerLinear(), text, kSums);
    Graph graph = ParseSpecialized(text);
    EXPECT_TRUE(FuseIntegerLinear()->Run(graph).ok());
    EXPECT_EQ(CountOps(graph, "reprise.IntegerLinear"), 1);
    return CountOps(graph, "Mul");
  };
  EXPECT_EQ(count_mul("input %f: f32[5, 5]"), 1);
  EXPECT_EQ(count_mul("input %f: f32[5]"), 1);  // columns of data
  EXPECT_EQ(count_mul("param %f: f32[5, 5] = p1"), 1);
  EXPECT_EQ(count_mul("input %f: f32[2, 5, 5]"), 1);  // a wider result
  EXPECT_EQ(count_mul("param %f: f32[1, 5] = p1"), 0);
  EXPECT_EQ(count_mul("input %f: f32[5, 1]"), 0);
}

TEST(FuseIntegerLinearTest, DequantizedProducts) {
  const auto before = [](absl::string_view weights) {
    return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 4]
    const %s: f32[] = {0.25}
    const %z: u8[] = {7}
    )",
                        weights, R"(
    %q: ? = QuantizeLinear(%x, %s, %z)
    %a: ? = DequantizeLinear(%q, %s, %z)
    %y: ? = MatMul(%a, %w)
    output %y
    output %a
  })");
  };
  const auto after = [](absl::string_view weights, absl::string_view operands) {
    return absl::StrCat(R"(graph {
    input %x: f32[2, 3, 4]
    const %s: f32[] = {0.25}
    const %z: u8[] = {7}
    )",
                        weights, R"(
    %q: ? = QuantizeLinear(%x, %s, %z)
    %a: ? = DequantizeLinear(%q, %s, %z)
    %y: ? = reprise.IntegerLinear()",
                        operands, R"() {activation = "none"}
    output %y
    output %a
  })");
  };
  // One scale, without and with a zero point.
  ExpectRewrite(*FuseIntegerLinear(),
                before("param %w: f32[4, 5] = DequantizeLinear(i8[4, 5] p0, f32[]{0.5}, i8[]{0})"),
                after("param %w: i8[4, 5] = p0\nconst %t: f32[1] = {0.5}", "%q, %w, %s, %t, %z"),
                kSums);
  ExpectRewrite(*FuseIntegerLinear(),
                before("param %w: f32[4, 5] = DequantizeLinear(u8[4, 5] p0, f32[]{0.5}, u8[]{3})"),
                after("param %w: u8[4, 5] = p0\nconst %t: f32[1] = {0.5}\nconst %u: u8[1] = {3}",
                      "%q, %w, %s, %t, %z, %u"),
                kSums);
  // One a column.
  ExpectRewrite(*FuseIntegerLinear(),
                before("param %w: f32[4, 5] = DequantizeLinear(i8[4, 5] p0, f32[5] p1, i8[5] p2)"),
                after("param %w: i8[4, 5] = p0\nparam %t: f32[5] = p1\nparam %u: i8[5] = p2",
                      "%q, %w, %s, %t, %z, %u"),
                kSums);
  // Transposed, one a row of the stored weights.
  ExpectRewrite(
      *FuseIntegerLinear(),
      before("param %w: f32[4, 5] = Transpose{perm = [1, 0]}(f32[5, 4] DequantizeLinear{axis = "
             "0}(i8[5, 4] p0, f32[5] p1))"),
      after("param %w: i8[4, 5] = Transpose{perm = [1, 0]}(i8[5, 4] p0)\nparam %t: f32[5] = p1",
            "%q, %w, %s, %t, %z"),
      kSums);
}

TEST(FuseIntegerLinearTest, NearlyADequantizedProductStays) {
  const auto graph = [](absl::string_view a, absl::string_view w) {
    return absl::StrCat("graph {\n", a, "\n", w, "\n%y: ? = MatMul(%a, %w)\noutput %y\n}");
  };
  const char* const kRows =
      "input %q: u8[3, 4]\nconst %s: f32[] = {0.5}\n%a: ? = DequantizeLinear(%q, %s)";
  // The weights: scales of their rows; 16 bits; floats; data.
  for (const char* w :
       {"param %w: f32[4, 4] = DequantizeLinear{axis = 0}(i8[4, 4] p0, f32[4] p1)",
        "param %w: f32[4, 5] = DequantizeLinear(i16[4, 5] p0, f32[]{0.5})",
        "param %w: f32[4, 5] = p0",
        "input %v: i8[4, 5]\nconst %t: f32[] = {0.5}\n%w: ? = DequantizeLinear(%v, %t)"}) {
    ExpectUnchanged(*FuseIntegerLinear(), graph(kRows, w));
  }
  // Rows of 16 bits, with scales of columns, or floats.
  const char* const kWeights = "param %w: f32[4, 5] = DequantizeLinear(i8[4, 5] p0, f32[]{0.5})";
  for (const char* a :
       {"input %q: u16[3, 4]\nconst %s: f32[] = {0.5}\n%a: ? = DequantizeLinear(%q, %s)",
        "input %q: u8[3, 4]\ninput %s: f32[4]\n%a: ? = DequantizeLinear(%q, %s)",
        "input %a: f32[3, 4]"}) {
    ExpectUnchanged(*FuseIntegerLinear(), graph(a, kWeights));
  }
}

TEST(FuseIntegerLinearTest, QuantizingProducts) {
  ExpectRewrite(*FuseIntegerLinear(), R"(graph {
    input %a: u8[2, 3, 4]
    param %w: i8[4, 5] = p0
    const %as: f32[] = {0.02}
    const %az: u8[] = {3}
    const %bs: f32[1] = {0.03}
    const %bz: i8[1] = {1}
    const %ys: f32[] = {0.5}
    const %yz: u8[] = {9}
    %y: ? = QLinearMatMul(%a, %as, %az, %w, %bs, %bz, %ys, %yz)
    output %y
  })",
                R"(graph {
    input %a: u8[2, 3, 4]
    param %w: i8[4, 5] = p0
    const %as: f32[] = {0.02}
    const %az: u8[] = {3}
    const %bs: f32[1] = {0.03}
    const %bz: i8[1] = {1}
    const %ys: f32[] = {0.5}
    const %yz: u8[] = {9}
    %f: ? = reprise.IntegerLinear(%a, %w, %as, %bs, %az, %bz) {activation = "none"}
    %y: ? = QuantizeLinear(%f, %ys, %yz)
    output %y
  })",
                {.integer_limit = 100});
  // A right side that is no weight becomes its steps.
  ExpectRewrite(*FuseIntegerLinear(), R"(graph {
    input %a: u8[2, 3, 4]
    input %b: i8[2, 4, 5]
    const %s: f32[] = {0.02}
    const %az: u8[] = {3}
    const %bz: i8[] = {1}
    const %bs: f32[] = {0.5}
    %y: ? = QLinearMatMul(%a, %s, %az, %b, %bs, %bz, %bs, %az)
    output %y
  })",
                R"(graph {
    input %a: u8[2, 3, 4]
    input %b: i8[2, 4, 5]
    const %s: f32[] = {0.02}
    const %az: u8[] = {3}
    const %bz: i8[] = {1}
    const %bs: f32[] = {0.5}
    %i: ? = MatMulInteger(%a, %b, %az, %bz)
    %t: ? = Mul(%s, %bs)
    %m: ? = DequantizeLinear(%i, %t) {axis = -1}
    %y: ? = QuantizeLinear(%m, %bs, %az)
    output %y
  })",
                {.integer_limit = 100});
}

TEST(FuseLinearTest, BiasActivationAndResidualJoinAnIntegerProduct) {
  const auto graph = [](absl::string_view nodes) {
    return absl::StrCat(R"(graph {
      input %a: u8[2, 3, 4]
      input %r: f32[2, 3, 5]
      param %w: i8[4, 5] = p0
      param %b: f32[5] = p1
      const %s: f32[] = {0.01}
      )",
                        nodes, "\noutput %y\n}");
  };
  ExpectRewrite(*FuseLinear(),
                graph("%p: ? = reprise.IntegerLinear(%a, %w, %s, %s) {activation = \"none\"}\n"
                      "%q: ? = Add(%b, %p)\n%y: ? = Gelu(%q)"),
                graph("%y: ? = reprise.IntegerLinear(%a, %w, %s, %s, _, _, %b) {activation = "
                      "\"gelu\"}"),
                {.integer_limit = 100});
  ExpectUnchanged(*FuseLinear(),
                  graph("%y: ? = reprise.IntegerLinear(%a, %w, %s, %s) {activation = \"relu\"}"));
  ExpectRewrite(*FuseResidual(),
                graph("%p: ? = reprise.IntegerLinear(%a, %w, %s, %s) {activation = \"none\"}\n"
                      "%y: ? = Add(%r, %p)"),
                graph("%y: ? = reprise.IntegerLinear(%a, %w, %s, %s, _, _, _, %r) {activation = "
                      "\"none\"}"),
                {.integer_limit = 100});
}

TEST(FuseQkvTest, IntegerProductsOfOneInputBecomeOne) {
  const auto graph = [](absl::string_view scale_of_k) {
    return absl::StrCat(R"(graph {
    input %a: u8[2, 3, 8]
    input %s: f32[]
    input %z: u8[]
    input %other: f32[]
    param %wq: i8[8, 8] = p0
    param %wk: i8[8, 8] = p1
    param %wv: i8[8, 8] = p2
    param %bq: f32[8] = p3
    const %sq: f32[] = {0.5}
    param %sk: f32[8] = p4
    param %zk: i8[8] = p5
    %q: ? = reprise.IntegerLinear(%a, %wq, %s, %sq, %z, _, %bq) {activation = "none"}
    %k: ? = reprise.IntegerLinear(%a, %wk, )",
                        scale_of_k, R"(, %sk, %z, %zk) {activation = "none"}
    %v: ? = reprise.IntegerLinear(%a, %wv, %s, %sq, %z) {activation = "none"}
    %y: ? = reprise.Attention(%q, %k, %v) {num_heads = 2, packed_qkv = 0, scale = 0.5}
    output %y
  })");
  };
  Graph fused = ParseSpecialized(graph("%s"));
  ASSERT_TRUE(FuseQkv()->Run(fused).ok());
  EXPECT_EQ(CountOps(fused, "reprise.IntegerLinear"), 1);
  ExpectSameAnswers(*FuseQkv(), graph("%s"), {.integer_limit = 3});
  ExpectUnchanged(*FuseQkv(), graph("%other"));
}

TEST(FuseFakeQuantizeTest, RoundTripsThatNobodyElseReadsBecomeOneNode) {
  const auto graph = [](absl::string_view nodes) {
    return absl::StrCat(R"(graph {
      input %x: f32[2, 3, 4]
      const %s: f32[] = {0.25}
      const %t: f32[] = {0.125}
      const %z: i8[] = {3}
      )",
                        nodes, "\noutput %y\n}");
  };
  ExpectRewrite(*FuseFakeQuantize(),
                graph("%q: ? = QuantizeLinear(%x, %s, %z)\n%y: ? = DequantizeLinear(%q, %s, %z)"),
                graph("%y: ? = reprise.FakeQuantize(%x, %s, %z)"));
  ExpectUnchanged(*FuseFakeQuantize(), graph("%q: ? = QuantizeLinear(%x, %s, %z)\n"
                                             "%y: ? = DequantizeLinear(%q, %t, %z)"));
  ExpectUnchanged(*FuseFakeQuantize(), graph("%q: ? = QuantizeLinear(%x, %s, %z)\n"
                                             "%y: ? = DequantizeLinear(%q, %s, %z)\noutput %q"));
}

TEST(QuantizeRuleTest, QuantizingTheSameStepsAgainIsNothing) {
  const auto graph = [](absl::string_view nodes) {
    return absl::StrCat(R"(graph {
      input %q: i8[2, 3, 4]
      const %s: f32[] = {0.3}
      const %t: f32[] = {0.4}
      const %z: i8[] = {3}
      const %shape: i64[2] = {6, 4}
      )",
                        nodes, "\noutput %y\n}");
  };
  ExpectRewrite(*Canonicalize(),
                graph("%a: ? = DequantizeLinear(%q, %s, %z)\n%b: ? = Reshape(%a, %shape)\n"
                      "%c: ? = Transpose(%b) {perm = [1, 0]}\n%y: ? = QuantizeLinear(%c, %s, %z)"),
                graph("%b: ? = Reshape(%q, %shape) {allowzero = 1}\n"
                      "%y: ? = Transpose(%b) {perm = [1, 0]}"),
                {.integer_limit = 100});
  ExpectUnchanged(*Canonicalize(), graph("%a: ? = DequantizeLinear(%q, %s, %z)\n"
                                         "%y: ? = QuantizeLinear(%a, %t, %z)"));
  // Steps so small that they run into each other.
  ExpectUnchanged(*Canonicalize(), R"(graph {
    input %q: i8[2, 3]
    const %s: f32[] = {1e-44}
    const %z: i8[] = {0}
    %a: ? = DequantizeLinear(%q, %s, %z)
    %y: ? = QuantizeLinear(%a, %s, %z)
    output %y
  })");
}

TEST(FuseEmbeddingTest, RowsOfBytesAreRowsOfTheDequantizedTable) {
  ExpectRewrite(*FuseEmbedding(), R"(graph {
    input %words: i64[2, 3]
    input %types: i64[2, 3]
    param %word_table: u8[9, 4] = p0
    param %type_table: f32[2, 4] = p1
    const %s: f32[] = {0.5}
    const %z: u8[] = {7}
    %a: ? = Gather(%word_table, %words)
    %b: ? = DequantizeLinear(%a, %s, %z)
    %c: ? = Gather(%type_table, %types)
    %y: ? = Add(%b, %c)
    output %y
  })",
                R"(graph {
    input %words: i64[2, 3]
    input %types: i64[2, 3]
    param %type_table: f32[2, 4] = p1
    param %word_table: f32[9, 4] = DequantizeLinear(u8[9, 4] p0, f32[]{0.5}, u8[]{7})
    %y: ? = reprise.EmbeddingSum(%word_table, %words, %type_table, %types)
    output %y
  })");
}

}  // namespace
}  // namespace reprise
