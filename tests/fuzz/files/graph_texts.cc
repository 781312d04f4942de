#include "tests/fuzz/files/graph_texts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace reprise::fuzz {
namespace {

std::string InGraph(absl::string_view lines) { return absl::StrCat("graph {\n", lines, "\n}"); }

std::string Nested(absl::string_view begin, absl::string_view middle, absl::string_view end,
                   int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) absl::StrAppend(&text, begin);
  absl::StrAppend(&text, middle);
  for (int i = 0; i < depth; ++i) absl::StrAppend(&text, end);
  return text;
}

std::string NestedGraphs(int depth) { return Nested("graph { = A() {g = ", "1", "} }", depth); }

std::string NestedExpressions(int depth) {
  return InGraph(
      absl::StrCat("param %p: f32[1] = ", Nested("f32[1] Neg(", "f32[1] p0", ")", depth)));
}

}  // namespace

std::vector<std::string> RareGraphTexts() {
  return {
      InGraph(R"(
  input %"a name, \"quoted\"": bool["2 * n + 1", "?"]
  input %s: f16[]
  input %t: ?[b, 4]
  const %nan: f32[3] = {nan, -inf, 1e-45}
  const %big: u64[1] = {18446744073709551615}
  %y: f32 = Gelu(%nan) {approximate = "tanh"} @"node \n"
  output %y)"),
      InGraph(R"(
  const %a: i8[2] = {-128, 127}
  const %b: u8[1] = {255}
  const %c: i16[1] = {-32768}
  const %d: u16[1] = {65535}
  const %e: i32[1] = {-2147483648} overridable
  const %f: u32[1] = {4294967295}
  const %g: bool[3] = {true, false, true}
  const %h: f64[3] = {nan, 1.5, nan(0x7ff8000000000001)}
  const %i: f16[3] = {nan, 1.5, nan(0x7e01)}
  const %j: bf16[3] = {inf, nan, nan(0xffc1)}
  const %k: f32[0] = {}
  const %l: bool[2] = hex"0102"
  const %m: f32[1] = {nan(0x7fc00001)}
  const %n: i64[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})"),
      InGraph(R"(
  input %x: f32[n, 2]
  param %p: f32[4, 2] = Transpose{perm = [1, 0]}(f32[2, 4] p0) overridable
  param %q: f32[2] = Add(f32[2]{1, 2}, f32[2]hex"0000803f00000040", _)
  param %r: f32[2] = Mul(f32[2] Add(f32[2] p1, f32[2] p2), f32[2] p3)
  param %"s": i64[] = p4
  %a: f32[2, 2], _, %b: i64 = MatMul(%x, _, %r)
  = Sink(%a)
  %c: ? = "an op"(%b) {}
  output %a
  output %c)"),
      InGraph(R"(
  input %c: bool[]
  %y: f32 = If(%c) {then_branch = graph {
      const %one: f32[] = {1}
      %z: f32 = Neg(%one)
      output %z
    }, else_branch = graph {
    }}
  %z: f32 = Many() {i = -7, f = 1.5, g = inf, h = nan(0x7fc00002), s = "a\tb\"c", t = f32[2]{1, 2},
    u = bf16[1]{nan(0x7fc1)}, is = [1, -2], fs = [1.0, 2.5e-8, nan, -inf, 7], ss = ["a", "\x01"],
    "no name" = 1, ei = ints[], ef = floats[], es = strings[], d = i64[]{3}} @"node"
  output %y)"),
      NestedGraphs(60),
      NestedExpressions(30),
  };
}

std::vector<std::string> RefusedGraphTexts() {
  std::vector<std::string> texts = {"",
                                    "grap",
                                    "graph",
                                    "graph {",
                                    "graph {} x",
                                    "graph { output %y }",
                                    NestedGraphs(70),
                                    NestedExpressions(70)};
  for (const char* lines : {"input x: f32[1]",
                            "input %\"\": f32[1]",
                            "input %x f32[1]",
                            "input %x: f99[1]",
                            "input %x: f32",
                            "input %x: f32[-1]",
                            "input %x: f32[1",
                            "input %x: f32[\"\"]",
                            "input %x: f32[99999999999999999999]",
                            "input %x: f32[1] input %x: f32[1]",
                            "input %x: f32[1\xff]",
                            "input %\"x",
                            "input %\"\\",
                            "input %\"\\q\": f32[1]",
                            "param %p: f32 = p0",
                            "param %p: f32[n] = p0",
                            "param %p: f32[1] p0",
                            "param %p: f32[1] = _",
                            "param %p: f32[1] = Neg(p0",
                            "param %p: f32[1] = Neg",
                            "param %p: f32[1] = Neg(f32[n] p0)",
                            "param %p: f32[1] = Neg{a}(p0)",
                            "param %p: f32[1] = Neg(f32[2]{1})",
                            "const %c: ?[1] = {1}",
                            "const %c: f32[2] = {1}",
                            "const %c: f32[1] = {1, 2}",
                            "const %c: f32[1] = {1",
                            "const %c: f32[1] = {}",
                            "const %c: f32[1] = 1",
                            "const %c: f32[1] = {x}",
                            "const %c: f32[1] = {-nan}",
                            "const %c: f64[1] = {x}",
                            "const %c: bool[1] = {2}",
                            "const %c: i8[1] = {128}",
                            "const %c: u64[1] = {-1}",
                            "const %c: f32[1] = {nan(0x1}",
                            "const %c: f32[1] = {nan(1)}",
                            "const %c: f32[1] = hex\"0\"",
                            "const %c: f32[1] = hex\"0x00\"",
                            "const %c: f32[1] = hex\"00\"",
                            "const %c: f32[1] = hex 00",
                            "const %c: f32[1] = {,}",
                            "const %c: f32[4294967296, 4294967296] = {}",
                            "const %c: f32[-1] = {}",
                            "%y f32 = A()",
                            "%y: f32 A()",
                            "%y: f32 = A",
                            "%y: f32 = A(%x)",
                            "%y: f32 = A(%y",
                            "%y: f32 = A(x)",
                            "%y: f32[n] = A()",
                            "%y: f32, %y: f32 = A()",
                            "%y: f32 = A() %y: f32 = A()",
                            "= A() {a = 1, a = 1}",
                            "= A() {a 1}",
                            "= A() {a = 1",
                            "= A() {a = }",
                            "= A() {a = [1, x]}",
                            "= A() {a = [1.5, x]}",
                            "= A() {a = [\"a\", 1]}",
                            "= A() {a = [1}",
                            "= A() {a = [\"a\"}",
                            "= A() {a = []}",
                            "= A() {a = ints 1}",
                            "= A() {a = ints[}",
                            "= A() {a = f32[n]{1}}",
                            "= A() {a = graph}",
                            "= A() @",
                            "output y"}) {
    texts.push_back(InGraph(lines));
  }
  return texts;
}

}  // namespace reprise::fuzz
