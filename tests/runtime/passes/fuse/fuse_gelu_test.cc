#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "tests/runtime/passes/testing/pass_test_util.h"

namespace reprise {
namespace {

std::string GeluGraph(absl::string_view body) {
  return absl::StrCat(R"(graph {
    input %x: f32[4, 8]
    const %half: f32[] = {0.5}
    const %one: f32[] = {1}
    const %two: f32[] = {2}
    const %three: f32[] = {3}
    const %root2: f32[] = {1.4142135}
    const %inv_root2: f32[] = {0.70710677}
    const %c: f32[] = {0.044715}
    const %k: f32[] = {0.7978846}
    )",
                      body, "\n output %y\n}");
}

std::string Gelu(absl::string_view approximate, bool doubled = false) {
  return absl::StrCat("graph {\n input %x: f32[4, 8]\n %y: ? = Gelu(%x) {approximate = \"",
                      approximate, doubled ? "\", doubled = 1}" : "\"}", "\n output %y\n}");
}

TEST(FuseGeluTest, TheSigmoidFormBecomesQuickGelu) {
  const auto body = [](const char* factor, const char* product) {
    return absl::StrCat("const %q: f32[] = {", factor, "}\n%a: ? = Mul(%q, %x)\n",
                        "%t: ? = Sigmoid(%a)\n", product);
  };
  for (const char* product : {"%y: ? = Mul(%x, %t)", "%y: ? = Mul(%t, %x)"}) {
    ExpectRewrite(*FuseGelu(), GeluGraph(body("1.702", product)),
                  "graph {\n input %x: f32[4, 8]\n"
                  "%y: ? = com.microsoft.QuickGelu(%x) {alpha = 1.702}\n output %y\n}");
  }
  ExpectUnchanged(*FuseGelu(), GeluGraph(body("1.7", "%y: ? = Mul(%x, %t)")));
  ExpectUnchanged(*FuseGelu(), GeluGraph(body("1.702", "%y: ? = Mul(%a, %t)")));
}

TEST(FuseGeluTest, TheErfFormsBecomeGelu) {
  const std::vector<std::string> bodies = {
      R"(%a: ? = Mul(%x, %inv_root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%one, %t)
         %d: ? = Mul(%half, %b)
         %y: ? = Mul(%x, %d))",
      R"(%h: ? = Mul(%x, %half)
         %a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %y: ? = Mul(%h, %b))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Mul(%t, %half)
         %d: ? = Add(%b, %half)
         %y: ? = Mul(%d, %x))",
  };
  for (const std::string& body : bodies) ExpectRewrite(*FuseGelu(), GeluGraph(body), Gelu("none"));
}

// Twice of x is made on the way, which is infinite above half of the largest number.
TEST(FuseGeluTest, TheFormsThatHalveLastSayThatTheyDouble) {
  const std::vector<std::string> bodies = {
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Div(%d, %two))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Mul(%x, %t)
         %d: ? = Add(%b, %x)
         %y: ? = Mul(%d, %half))",
  };
  for (const std::string& body : bodies) {
    ExpectRewrite(*FuseGelu(), GeluGraph(body), Gelu("none", /*doubled=*/true));
  }
  const std::string tanh = R"(%p: ? = Pow(%x, %three)
         %a: ? = Mul(%p, %c)
         %b: ? = Add(%x, %a)
         %d: ? = Mul(%b, %k)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %e)
         %y: ? = Mul(%h, %half))";
  ExpectRewrite(*FuseGelu(), GeluGraph(tanh), Gelu("tanh", /*doubled=*/true), {.tolerance = 1e-5});
}

TEST(FuseGeluTest, AFormThatEndsBelowHalfOfTheLargestNumberStays) {
  ExpectUnchanged(*FuseGelu(), GeluGraph(R"(const %quarter: f32[] = {0.25}
         %a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %e: ? = Mul(%d, %two)
         %y: ? = Mul(%e, %quarter))"));
}

TEST(FuseGeluTest, TheTanhFormsBecomeGelu) {
  const std::vector<std::string> bodies = {
      R"(%p: ? = Pow(%x, %three)
         %a: ? = Mul(%p, %c)
         %b: ? = Add(%x, %a)
         %d: ? = Mul(%b, %k)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %half)
         %y: ? = Mul(%h, %e))",
      R"(%xx: ? = Mul(%x, %x)
         %p: ? = Mul(%xx, %x)
         %a: ? = Mul(%c, %p)
         %b: ? = Add(%a, %x)
         %d: ? = Mul(%k, %b)
         %t: ? = Tanh(%d)
         %e: ? = Add(%one, %t)
         %f: ? = Mul(%half, %e)
         %y: ? = Mul(%x, %f))",
      R"(%kx: ? = Mul(%x, %k)
         %cx: ? = Mul(%x, %c)
         %cxx: ? = Mul(%cx, %x)
         %i: ? = Add(%cxx, %one)
         %d: ? = Mul(%kx, %i)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %half)
         %y: ? = Mul(%h, %e))",
  };
  for (const std::string& body : bodies) {
    ExpectRewrite(*FuseGelu(), GeluGraph(body), Gelu("tanh"), {.tolerance = 1e-5});
  }
}

TEST(FuseGeluTest, NearlyTheFormStays) {
  const std::vector<std::string> bodies = {
      R"(%a: ? = Div(%x, %two)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %half)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half))",
      R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %z: ? = Neg(%x)
         %d: ? = Mul(%z, %b)
         %y: ? = Mul(%d, %half))",
      R"(%p: ? = Pow(%x, %two)
         %a: ? = Mul(%p, %c)
         %b: ? = Add(%x, %a)
         %d: ? = Mul(%b, %k)
         %t: ? = Tanh(%d)
         %e: ? = Add(%t, %one)
         %h: ? = Mul(%x, %half)
         %y: ? = Mul(%h, %e))",
  };
  for (const std::string& body : bodies) ExpectUnchanged(*FuseGelu(), GeluGraph(body));
}

TEST(FuseGeluTest, AnInnerValueThatIsAnOutputStays) {
  ExpectUnchanged(*FuseGelu(), GeluGraph(R"(%a: ? = Div(%x, %root2)
         %t: ? = Erf(%a)
         %b: ? = Add(%t, %one)
         %d: ? = Mul(%x, %b)
         %y: ? = Mul(%d, %half)
         output %t)"));
}

}  // namespace
}  // namespace reprise
