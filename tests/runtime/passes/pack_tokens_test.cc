// Packed against unpadded: every segment gets what it gets alone, whatever lies beside it.
#include "runtime/passes/pack_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "runtime/passes/pass.h"
#include "runtime/passes/request_scales.h"
#include "runtime/passes/specialize.h"
#include "tests/runtime/passes/pass_test_util.h"
#include "tests/testing/interpreter.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr int64_t kLongest = 12;
constexpr int64_t kTokens = 40;
constexpr int64_t kSegments = 8;
constexpr int64_t kIdLimit = 5;

Graph Symbolic(absl::string_view text) {
  absl::StatusOr<Graph> graph = Parse(absl::StrCat("graph {\n", text, "\n}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *std::move(graph) : Graph();
}

absl::StatusOr<Graph> Pack(absl::string_view text) {
  Graph symbolic = Symbolic(text);
  ScaleByRequest(symbolic);
  return PackTokens(symbolic, {.batch = "batch", .sequence = "sequence", .longest = kLongest});
}

// The model's inputs of one request, whose rows are segments, and the same put at its place in a
// packed tensor.
struct Segment {
  int64_t begin;  // token
  int64_t first;  // segment
  int64_t rows;
  int64_t length;
  std::map<std::string, Tensor> inputs;
};

// [rows, length, ...] or [rows, ...] tensors side by side in one of `capacity` rows; what is left
// is filled with ones.
Tensor Join(const std::vector<Segment>& segments, const std::string& name, const Shape& packed,
            bool by_token) {
  const DType dtype = segments[0].inputs.at(name).dtype();
  const size_t row = NumElements(packed) / std::max<int64_t>(1, packed[0]) * DTypeSize(dtype);
  return Tensor::Make(dtype, packed, [&](void* data) {
    std::memset(data, 0, NumElements(packed) * DTypeSize(dtype));
    for (size_t s = 0; s < segments.size(); ++s) {
      const Tensor& own = segments[s].inputs.at(name);
      const size_t at = by_token ? segments[s].begin : segments[s].first;
      std::memcpy(static_cast<char*>(data) + at * row, own.data(), own.bytes());
    }
  });
}

void ExpectRows(const Tensor& packed, int64_t first, const Tensor& alone) {
  const std::vector<double> got = packed.ToDoubles(), expected = alone.ToDoubles();
  const int64_t row = packed.num_elements() / std::max<int64_t>(1, packed.shape()[0]);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = got[first * row + static_cast<int64_t>(i)];
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(value)) << "element " << i;
      continue;
    }
    ASSERT_NEAR(value, expected[i], 1e-4 + 1e-4 * std::abs(expected[i])) << "element " << i;
  }
}

// Runs `text` packed and each of its requests alone.
void ExpectPacks(absl::string_view text) {
  SCOPED_TRACE(std::string(text));
  const Graph symbolic = Symbolic(text);
  absl::StatusOr<Graph> packed = Pack(text);
  ASSERT_TRUE(packed.ok()) << packed.status();
  absl::StatusOr<Graph> graph =
      Specialize(*packed, {.axes = {{kTokensAxis, kTokens}, {kSegmentsAxis, kSegments}}});
  ASSERT_TRUE(graph.ok()) << graph.status() << Print(*packed);
  ASSERT_TRUE(RunCapturePasses(*graph).ok());

  std::mt19937 random(11);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Tensor> parameters = RandomParameters(symbolic, kIdLimit, random);
    std::vector<Segment> segments;
    int64_t tokens = 0, rows = 0;
    for (const auto& [of_rows, length] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {2, 1}, {1, kLongest}, {2, 7}}) {
      Segment segment = {.begin = tokens, .first = rows, .rows = of_rows, .length = length};
      for (ValueId id : symbolic.inputs()) {
        const Value& value = symbolic.value(id);
        Shape shape;
        for (const Dim& dim : value.dims) {
          shape.push_back(dim.symbol == "batch" ? of_rows : dim.is_constant() ? dim.size : length);
        }
        segment.inputs[value.name] = RandomTensor(value.dtype, shape, kIdLimit, random);
      }
      segments.push_back(std::move(segment));
      tokens += of_rows * length;
      rows += of_rows;
    }
    const auto bounds = [&](const std::vector<int32_t>& begins, int64_t end) {
      std::vector<int32_t> all(kSegments + 1, static_cast<int32_t>(end));
      std::copy(begins.begin(), begins.end(), all.begin());
      return Tensor::FromVector(DType::kInt32, Shape{kSegments + 1}, all);
    };
    std::map<std::string, Tensor> inputs;
    for (ValueId id : graph->inputs()) {
      const Value& value = graph->value(id);
      if (value.name == kPositionsInput) {
        std::vector<int64_t> positions(kTokens, 0);
        for (const Segment& segment : segments) {
          for (int64_t i = 0; i < segment.rows * segment.length; ++i) {
            positions[segment.begin + i] = i % segment.length;
          }
        }
        inputs[value.name] = Tensor::FromVector(DType::kInt64, Shape{kTokens}, positions);
      } else if (value.name == kSegmentsInput) {
        std::vector<int32_t> begins;
        for (const Segment& segment : segments) {
          for (int64_t row = 0; row < segment.rows; ++row) {
            begins.push_back(static_cast<int32_t>(segment.begin + row * segment.length));
          }
        }
        inputs[value.name] = bounds(begins, tokens);
      } else if (value.name == kRequestTokensInput || value.name == kRequestRowsInput) {
        const bool by_token = value.name == kRequestTokensInput;
        std::vector<int32_t> begins;
        for (const Segment& segment : segments) {
          begins.push_back(static_cast<int32_t>(by_token ? segment.begin : segment.first));
        }
        inputs[value.name] = bounds(begins, by_token ? tokens : rows);
      } else {
        const bool by_token = (*value.shape)[0] == kTokens;
        inputs[value.name] = Join(segments, value.name, *value.shape, by_token);
      }
    }
    const auto together = Interpret(*graph, inputs, parameters);
    ASSERT_TRUE(together.ok()) << together.status() << Print(*graph);
    for (size_t s = 0; s < segments.size(); ++s) {
      SCOPED_TRACE(absl::StrCat("segment of ", segments[s].length));
      const auto alone_graph = Specialize(
          symbolic, {.axes = {{"batch", segments[s].rows}, {"sequence", segments[s].length}}});
      ASSERT_TRUE(alone_graph.ok()) << alone_graph.status();
      const auto alone = Interpret(*alone_graph, segments[s].inputs, parameters);
      ASSERT_TRUE(alone.ok()) << alone.status();
      for (size_t o = 0; o < alone->size(); ++o) {
        SCOPED_TRACE(absl::StrCat("output ", o));
        const bool by_token = (*together)[o].shape()[0] == kTokens;
        ExpectRows((*together)[o], by_token ? segments[s].begin : segments[s].first, (*alone)[o]);
      }
    }
  }
}

constexpr absl::string_view kIds = "input %ids: i64[batch, sequence]\n";
constexpr absl::string_view kX = "input %x: f32[batch, sequence, 8]\n";
constexpr absl::string_view kMask = "input %mask: i64[batch, sequence]\n";
// The sequence as i64[1].
constexpr absl::string_view kLength =
    "const %one0: i64[] = {1}\nconst %zero1: i64[1] = {0}\nconst %one1: i64[1] = {1}\n"
    "%xs: ? = Shape(%x)\n%len0: ? = Gather(%xs, %one0)\n%len: ? = Unsqueeze(%len0, %zero1)\n";

TEST(PackTokensTest, TokenWiseOpsCarryOver) {
  ExpectPacks(absl::StrCat(kX, R"(
    param %w: f32[8, 40] = p0
    param %v: f32[40, 8] = p1
    const %g: f32[8] = {1, 2, 3, 4, 5, 6, 7, 8}
    %a: ? = MatMul(%x, %w)
    %b: ? = Gelu(%a)
    %c: ? = MatMul(%b, %v)
    %d: ? = Add(%c, %x)
    %y: ? = LayerNormalization(%d, %g) {axis = -1}
    output %y)"));
}

TEST(PackTokensTest, RowsOfATableAndPositionsAreLookedUp) {
  ExpectPacks(absl::StrCat(kIds, R"(
    param %words: f32[5, 64] = p0
    param %places: f32[20, 64] = p1
    const %all: i64[1, 20] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
    const %one0: i64[] = {1}
    const %zero1: i64[1] = {0}
    const %one1: i64[1] = {1}
    %s: ? = Shape(%ids)
    %n0: ? = Gather(%s, %one0)
    %n: ? = Unsqueeze(%n0, %zero1)
    %used: ? = Slice(%all, %zero1, %n, %one1)
    %w: ? = Gather(%words, %ids)
    %p: ? = Gather(%places, %used)
    %y: ? = Add(%w, %p)
    output %y)"));
}

TEST(PackTokensTest, APieceOfATableByPositionIsLookedUp) {
  ExpectPacks(absl::StrCat(kX, kLength, R"(
    const %t: f32[20, 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
    %used: ? = Slice(%t, %zero1, %len, %zero1)
    %y: ? = Mul(%x, %used)
    output %y)"));
}

constexpr absl::string_view kQuantisedProduct = R"(
    param %w: i8[8, 5] = p0
    const %wz: i8[] = {0}
    const %ws: f32[] = {0.05}
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%t)
    %sum: ? = MatMulInteger(%q, %w, %qz, %wz)
    %sums: ? = Cast(%sum) {to = 1}
    %scale: ? = Mul(%qs, %ws)
    %y: ? = Mul(%sums, %scale)
    output %y)";

// What lies beside a request, or behind the last one, has no part in its range; its own rows have.
TEST(PackTokensTest, RequestsAreQuantisedByTheirOwnRange) {
  ExpectPacks(absl::StrCat(kX, "%t: ? = Exp(%x)", kQuantisedProduct));
  // One vector a row, as behind pooling.
  ExpectPacks(absl::StrCat(kX, R"(
    const %tokens: i64[1] = {1}
    %t: ? = ReduceMean(%x, %tokens) {keepdims = 0})",
                           kQuantisedProduct));
  // Rows and tokens in one dim.
  ExpectPacks(absl::StrCat(kX, R"(
    const %flat: i64[2] = {-1, 8}
    %x2: ? = Reshape(%x, %flat)
    %shape: ? = Shape(%x)
    const %five: i64[1] = {5}
    const %two1: i64[1] = {2}
    const %from: i64[1] = {0}
    %leads: ? = Slice(%shape, %from, %two1)
    %back: ? = Concat(%leads, %five) {axis = 0}
    param %w: i8[8, 5] = p0
    const %wz: i8[] = {0}
    const %ws: f32[] = {0.05}
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%x2)
    %sum: ? = MatMulInteger(%q, %w, %qz, %wz)
    %sums: ? = Cast(%sum) {to = 1}
    %scale: ? = Mul(%qs, %ws)
    %scaled: ? = Mul(%sums, %scale)
    %y: ? = Reshape(%scaled, %back)
    output %y)"));
}

TEST(PackTokensTest, WhatIsQuantisedBeyondTokensAndRowsRefuses) {
  // Positions of a row in the last dim.
  const auto turned = Pack(absl::StrCat(kX, R"(
    %t: ? = Transpose(%x) {perm = [0, 2, 1]}
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%t)
    %f: ? = Cast(%q) {to = 1}
    %g: ? = Mul(%f, %qs)
    %y: ? = Transpose(%g) {perm = [0, 2, 1]}
    output %y)"));
  EXPECT_TRUE(absl::IsUnimplemented(turned.status())) << turned.status();
  // A scale that meets what has other dims than its own tensor.
  const auto elsewhere = Pack(absl::StrCat(kX, kMask, R"(
    %q: ?, %qs: ?, %qz: ? = DynamicQuantizeLinear(%x)
    %m: ? = Cast(%mask) {to = 1}
    %y: ? = Mul(%m, %qs)
    output %y)"));
  EXPECT_FALSE(elsewhere.ok());
}

TEST(PackTokensTest, StepsOfIntegersStayWithTheirTokens) {
  ExpectPacks(absl::StrCat(kX, R"(
    const %s: f32[] = {0.1}
    const %z: i8[] = {3}
    param %each: f32[8] = p0
    %q: ? = QuantizeLinear(%x, %s, %z)
    %d: ? = DequantizeLinear(%q, %s, %z)
    %size: ? = Abs(%each)
    %e: ? = DequantizeLinear(%q, %size) {axis = 2}
    %y: ? = Add(%d, %e)
    output %y)"));
}

// Tables that are weights are cut in the recipe, or not at all where the longest segment needs all.
TEST(PackTokensTest, APieceOfLearntPositionsIsLookedUp) {
  for (int64_t rows : {kLongest, kLongest + 1, kLongest + 8}) {
    ExpectPacks(absl::StrCat(kX, kLength, "param %t: f32[", rows, R"(, 8] = p0
      %used: ? = Slice(%t, %zero1, %len, %zero1)
      %wide: ? = Unsqueeze(%used, %zero1)
      %y: ? = Mul(%x, %wide)
      output %y)"));
  }
}

TEST(PackTokensTest, APieceThatDoesNotBeginWithTheFirstPositionRefuses) {
  const auto packed = Pack(absl::StrCat(kX, kLength, R"(
    param %t: f32[20, 8] = p0
    const %minus: i64[1] = {-1}
    const %low: i64[1] = {-100}
    %used: ? = Slice(%t, %minus, %low, %zero1, %minus)
    %some: ? = Slice(%used, %zero1, %len, %zero1)
    %y: ? = Mul(%x, %some)
    output %y)"));
  // All of it backwards does not depend on the length; a piece of that is one of a table.
  EXPECT_TRUE(packed.ok()) << packed.status();
  const auto behind = Pack(absl::StrCat(kX, kLength, R"(
    param %t: f32[20, 8] = p0
    const %end: i64[1] = {20}
    %begin: ? = Sub(%end, %len)
    %used: ? = Slice(%t, %begin, %end, %zero1)
    %y: ? = Mul(%x, %used)
    output %y)"));
  EXPECT_FALSE(behind.ok());
}

// Positions that count the tokens which are no padding, as RoBERTa's exports have them.
TEST(PackTokensTest, PositionsThatCountTokensBeginAnewInEverySegment) {
  ExpectPacks(absl::StrCat(kIds, R"(
    param %words: f32[5, 64] = p0
    param %places: f32[20, 64] = p1
    const %pad: i64[] = {1}
    const %axis: i64[] = {1}
    %is: ? = Equal(%ids, %pad)
    %not: ? = Not(%is)
    %count: ? = Cast(%not) {to = 7}
    %sum: ? = CumSum(%count, %axis)
    %place: ? = Mul(%sum, %count)
    %shifted: ? = Add(%place, %pad)
    %w: ? = Gather(%words, %ids)
    %p: ? = Gather(%places, %shifted)
    %y: ? = Add(%w, %p)
    output %y)"));
}

std::string Attention(absl::string_view masks, absl::string_view scores) {
  return absl::StrCat(kX, kMask, kLength, R"(
    const %heads: i64[4] = {0, 0, 2, 4}
    const %tokens: i64[3] = {0, 0, 8}
    const %axes: i64[2] = {1, 2}
    const %unit: f32[] = {1}
    const %low: f32[] = {-10000}
    const %lowest: f32[] = {-3.4028235e+38}
    const %zero: f32[] = {0}
    const %zero_int: i64[] = {0}
    %m: ? = Cast(%mask) {to = 1}
    %m4: ? = Unsqueeze(%m, %axes)
    %off: ? = Sub(%unit, %m4)
    %added: ? = Mul(%off, %low))",
                      masks, R"(
    %q4: ? = Reshape(%x, %heads)
    %q: ? = Transpose(%q4) {perm = [0, 2, 1, 3]}
    %k: ? = Transpose(%q4) {perm = [0, 2, 3, 1]}
    %s: ? = MatMul(%q, %k))",
                      scores, R"(
    %p: ? = Softmax(%masked) {axis = -1}
    %o: ? = MatMul(%p, %q)
    %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
    %y: ? = Reshape(%ot, %tokens)
    output %y)");
}

TEST(PackTokensTest, HeadsAreTurnedByThePositionInTheirSegment) {
  for (int64_t rows : {kLongest, kLongest + 4}) {
    ExpectPacks(absl::StrCat(kX, kLength, "param %c: f32[", rows, ", 4] = p0\nparam %d: f32[", rows,
                             R"(, 4] = p1
      const %heads: i64[4] = {0, 0, 2, 4}
      const %tokens: i64[3] = {0, 0, 8}
      const %two1: i64[1] = {2}
      const %four1: i64[1] = {4}
      const %last1: i64[1] = {-1}
      const %axes: i64[2] = {0, 1}
      %c0: ? = Slice(%c, %zero1, %len, %zero1)
      %d0: ? = Slice(%d, %zero1, %len, %zero1)
      %cosine: ? = Unsqueeze(%c0, %axes)
      %sine: ? = Unsqueeze(%d0, %axes)
      %x4: ? = Reshape(%x, %heads)
      %q0: ? = Transpose(%x4) {perm = [0, 2, 1, 3]}
      %low: ? = Slice(%q0, %zero1, %two1, %last1)
      %high: ? = Slice(%q0, %two1, %four1, %last1)
      %minus: ? = Neg(%high)
      %turned: ? = Concat(%minus, %low) {axis = -1}
      %q1: ? = Mul(%q0, %cosine)
      %q2: ? = Mul(%turned, %sine)
      %q: ? = Add(%q1, %q2)
      %k: ? = Transpose(%q) {perm = [0, 1, 3, 2]}
      %s: ? = MatMul(%q, %k)
      %p: ? = Softmax(%s) {axis = -1}
      %o: ? = MatMul(%p, %q0)
      %ot: ? = Transpose(%o) {perm = [0, 2, 1, 3]}
      %y: ? = Reshape(%ot, %tokens)
      output %y)"));
  }
}

TEST(PackTokensTest, AttentionStaysWithinItsSegment) {
  ExpectPacks(Attention("", "\n%masked: ? = Identity(%s)"));
  ExpectPacks(Attention("", "\n%masked: ? = Add(%s, %added)"));
}

TEST(PackTokensTest, ChosenMasksAreOneATokenWhateverIsLeft) {
  ExpectPacks(Attention(R"(
    %keep: ? = Cast(%m4) {to = 9}
    %choice: ? = Where(%keep, %zero, %lowest))",
                        "\n%masked: ? = Add(%s, %choice)"));
}

TEST(PackTokensTest, ACausalTableIsCutForEverySegment) {
  ExpectPacks(Attention(R"(
    %square: ? = Concat(%len, %len) {axis = 0}
    %full: ? = Expand(%lowest, %square)
    %causal: ? = Trilu(%full, %one0) {upper = 1}
    %both: ? = Add(%causal, %added))",
                        "\n%masked: ? = Add(%s, %both)"));
}

// `window`, bool [length, length]: keys at most two away.
constexpr char kWindow[] = R"(
    const %reach: i64[] = {2}
    %row: ? = Range(%zero_int, %len0, %one0)
    %r: ? = Unsqueeze(%row, %zero1)
    %c: ? = Unsqueeze(%row, %one1)
    %d: ? = Sub(%r, %c)
    %distance: ? = Abs(%d)
    %window: ? = LessOrEqual(%distance, %reach))";

TEST(PackTokensTest, AWindowHidesBesideWhatTheKeysSay) {
  ExpectPacks(Attention(absl::StrCat(kWindow, R"(
    %outside: ? = Not(%window)
    %both: ? = Where(%outside, %lowest, %added))"),
                        "\n%masked: ? = Add(%s, %both)"));
}

TEST(PackTokensTest, KeysThatAreSeenAndInTheWindowAreChosen) {
  // Without heads first, as masks of rows come.
  ExpectPacks(Attention(absl::StrCat(kWindow, R"(
    const %never: f32[] = {-inf}
    %keep: ? = Cast(%m4) {to = 9}
    %keep3: ? = Squeeze(%keep, %one1)
    %seen: ? = And(%window, %keep3)
    %chosen: ? = Where(%seen, %zero, %never)
    %both: ? = Unsqueeze(%chosen, %one1))"),
                        "\n%masked: ? = Add(%s, %both)"));
}

// Few keys of a row count, and of some rows none: `counts`, bool [batch, 1, 1, length].
constexpr char kFewCount[] = R"(
    %few: ? = Equal(%mask, %zero_int)
    %counts: ? = Unsqueeze(%few, %axes)
    %counted: ? = Cast(%counts) {to = 1}
    %left_out: ? = Sub(%unit, %counted)
    %hidden: ? = Cast(%left_out) {to = 9}
    %filled: ? = Where(%hidden, %lowest, %left_out)
    const %lower: f32[] = {-1e+30})";
constexpr char kOutside[] = "\n%outside: ? = Not(%window)";
constexpr char kCausal[] = R"(
    %square: ? = Concat(%len, %len) {axis = 0}
    %full: ? = Expand(%lowest, %square)
    %causal: ? = Trilu(%full, %one0) {upper = 1})";

void ExpectTakesAnyMask(absl::string_view masks, bool expected) {
  const std::string text = Attention(absl::StrCat(kWindow, kOutside, kCausal, kFewCount, masks),
                                     "\n%masked: ? = Add(%s, %both)");
  const auto packed = Pack(text);
  ASSERT_TRUE(packed.ok()) << packed.status() << text;
  EXPECT_EQ(TakesAnyMask(*packed), expected) << text;
  if (expected) ExpectPacks(text);
}

// It attends to all of them alike, those out of its reach as well, however a model joins masks.
TEST(PackTokensTest, AQueryThatSeesNoKeyIsAnsweredAsAlone) {
  ExpectTakesAnyMask("\n%both: ? = Where(%outside, %lowest, %filled)", true);
  ExpectTakesAnyMask("\n%both: ? = Where(%hidden, %lowest, %causal)", true);
  ExpectTakesAnyMask("\n%both: ? = Where(%outside, %lower, %counted)", true);
  ExpectTakesAnyMask("\n%both: ? = Add(%causal, %filled)", true);
  for (const char* fill : {"%lowest", "%lower", "%never"}) {
    ExpectTakesAnyMask(absl::StrCat(R"(
      const %never: f32[] = {-inf}
      %seen: ? = And(%window, %counts)
      %both: ? = Where(%seen, %zero, )",
                                    fill, ")"),
                       true);
    ExpectTakesAnyMask(absl::StrCat(R"(
      const %never: f32[] = {-inf}
      %seen: ? = And(%counts, %window)
      %once: ? = Where(%seen, %zero, )",
                                    fill, ")\n%both: ? = Where(%outside, ", fill, ", %once)"),
                       true);
  }
}

TEST(PackTokensTest, MasksThatScoresShowThroughAreNotForAnyRow) {
  ExpectTakesAnyMask("\n%both: ? = Identity(%added)", false);
  ExpectTakesAnyMask("\n%both: ? = Identity(%filled)", true);
  ExpectTakesAnyMask(R"(
      %off_by: ? = Mul(%left_out, %low)
      %both: ? = Where(%outside, %lowest, %off_by))",
                     false);
}

TEST(PackTokensTest, MasksThatHideTwiceSaySo) {
  // Numbers that may be lower than what takes their place, or are of the client's making.
  ExpectTakesAnyMask("\n%both: ? = Where(%outside, %lower, %filled)", false);
  ExpectTakesAnyMask("\n%both: ? = Where(%outside, %lowest, %added)", false);
  // Rounded in another order.
  ExpectTakesAnyMask("\n%first: ? = Add(%causal, %filled)\n%both: ? = Add(%first, %causal)", false);
}

TEST(PackTokensTest, WhatEitherOfBothMayShowRefuses) {
  const auto packed = Pack(Attention(absl::StrCat(kWindow, R"(
    %keep: ? = Cast(%m4) {to = 9}
    %seen: ? = And(%window, %keep)
    %both: ? = Where(%seen, %lowest, %zero))"),
                                     "\n%masked: ? = Add(%s, %both)"));
  EXPECT_THAT(packed.status().message(), HasSubstr("in a way without a rule"));
}

TEST(PackTokensTest, ALearntBiasForPairsOfPositionsIsATable) {
  ExpectPacks(Attention(R"(
    param %learnt: f32[300, 2] = p0
    %row: ? = Range(%zero_int, %len0, %one0)
    %r: ? = Unsqueeze(%row, %zero1)
    %c: ? = Unsqueeze(%row, %one1)
    %d: ? = Sub(%r, %c)
    %distance: ? = Abs(%d)
    %found: ? = Gather(%learnt, %distance)
    %turned: ? = Transpose(%found) {perm = [2, 0, 1]}
    %bias: ? = Unsqueeze(%turned, %zero1)
    %both: ? = Add(%bias, %added))",
                        "\n%masked: ? = Add(%s, %both)"));
}

TEST(PackTokensTest, FirstTokenByIndexAndByPiece) {
  ExpectPacks(absl::StrCat(kX, R"(
    const %zero: i64[] = {0}
    param %w: f32[8, 40] = p0
    %first: ? = Gather(%x, %zero) {axis = 1}
    %y: ? = MatMul(%first, %w)
    output %y)"));
  ExpectPacks(absl::StrCat(kX, R"(
    const %zero: i64[1] = {0}
    const %one: i64[1] = {1}
    %y: ? = Slice(%x, %zero, %one, %one)
    %z: ? = Squeeze(%y, %one)
    output %z
    output %x)"));
}

TEST(PackTokensTest, MaskedMeanAndNormOfRows) {
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %last: i64[1] = {-1}
    const %second: i64[1] = {1}
    const %least: f32[] = {1e-9}
    %m: ? = Cast(%mask) {to = 1}
    %wide: ? = Unsqueeze(%m, %last)
    %kept: ? = Mul(%x, %wide)
    %sum: ? = ReduceSum(%kept, %second) {keepdims = 0}
    %count: ? = ReduceSum(%wide, %second) {keepdims = 0}
    %least_count: ? = Max(%count, %least)
    %mean: ? = Div(%sum, %least_count)
    %norm: ? = ReduceL2(%mean, %last) {keepdims = 1}
    %least_norm: ? = Max(%norm, %least)
    %y: ? = Div(%mean, %least_norm)
    output %y)"));
}

TEST(PackTokensTest, ReductionsOverTokensAndWhatIsSpreadBack) {
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"}) {
    ExpectPacks(absl::StrCat(kX, "const %second: i64[1] = {1}\n%r: ? = ", op,
                             "(%x, %second) {keepdims = 1}\n%y: ? = Sub(%x, %r)\noutput %y"));
  }
}

TEST(PackTokensTest, PoolingByAProductWithTheMask) {
  ExpectPacks(absl::StrCat(kX, kMask, R"(
    const %second: i64[1] = {1}
    %m: ? = Cast(%mask) {to = 1}
    %row: ? = Unsqueeze(%m, %second)
    %sum: ? = MatMul(%row, %x)
    %y: ? = Squeeze(%sum, %second)
    output %y)"));
}

TEST(PackTokensTest, RowsFlattenedAroundAProduct) {
  ExpectPacks(absl::StrCat(kX, R"(
    param %w: f32[8, 40] = p0
    const %flat: i64[2] = {-1, 8}
    const %last: i64[1] = {40}
    const %two: i64[1] = {2}
    const %zero: i64[1] = {0}
    %f: ? = Reshape(%x, %flat)
    %g: ? = Gemm(%f, %w)
    %shape: ? = Shape(%x)
    %lead: ? = Slice(%shape, %zero, %two)
    %back: ? = Concat(%lead, %last) {axis = 0}
    %y: ? = Reshape(%g, %back)
    output %y)"));
}

TEST(PackTokensTest, AnInputOfOneRowARequestIsOneASegment) {
  ExpectPacks(absl::StrCat(kX, R"(
    input %bias: f32[batch, 1, 8]
    input %label: i64[batch, 1]
    param %table: f32[5, 64] = p0
    %y: ? = Add(%x, %bias)
    %z: ? = Gather(%table, %label)
    output %y
    output %z)"));
}

void ExpectRefused(absl::string_view text, absl::string_view why) {
  const absl::StatusOr<Graph> packed = Pack(text);
  ASSERT_FALSE(packed.ok()) << text;
  EXPECT_EQ(packed.status().code(), absl::StatusCode::kUnimplemented) << packed.status();
  EXPECT_THAT(std::string(packed.status().message()), HasSubstr(std::string(why)));
}

TEST(PackTokensTest, NodesWithoutARuleRefuseByName) {
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
  ExpectRefused(absl::StrCat(kX, "%y: ? = ReduceSum(%x)\noutput %y"), "ReduceSum cannot be packed");
}

TEST(PackTokensTest, WhatDependsOnTheLengthItselfRefuses) {
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
                "no table by position");
}

TEST(PackTokensTest, InputsAndOutputsWithoutAPackedFormRefuse) {
  ExpectRefused("input %x: f32[sequence, batch]\n%y: ? = Relu(%x)\noutput %y", "input 'x'");
  ExpectRefused(absl::StrCat(kX,
                             "input %k: f32[4]\n%y: ? = Relu(%x)\n%z: ? = Relu(%k)\n"
                             "output %y\noutput %z"),
                "input 'k'");
  ExpectRefused(absl::StrCat(kX, "const %f: i64[2] = {-1, 8}\n%y: ? = Reshape(%x, %f)\noutput %y"),
                "output 0");
}

TEST(PackTokensTest, ThePackedTextIsWhatItShouldBe) {
  const absl::StatusOr<Graph> packed = Pack(absl::StrCat(kX, R"(
    param %w: f32[8, 40] = p0
    const %zero: i64[] = {0}
    %a: ? = MatMul(%x, %w)
    %b: ? = Relu(%a)
    %first: ? = Gather(%b, %zero) {axis = 1}
    output %b
    output %first)"));
  ASSERT_TRUE(packed.ok()) << packed.status();
  const Graph expected = Symbolic(R"(
    input %x: f32[tokens, 8]
    input %p: i64[tokens]
    input %s: i32["segments + 1"]
    param %w: f32[8, 40] = p0
    %b: ? = reprise.Linear(%x, %w) {activation = "relu"}
    %first: ? = reprise.SegmentReduce(%b, %s) {reduction = "first"}
    output %b
    output %first)");
  EXPECT_EQ(Print(*packed, {.names = false}), Print(expected, {.names = false}));
}

}  // namespace
}  // namespace reprise
