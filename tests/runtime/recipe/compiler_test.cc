#include "runtime/recipe/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> ParametersOf(absl::string_view text) {
  const CpuDevice device(CpuDeviceOptions{.gemm_provider = GemmProvider::kOwn});
  SteadyClock clock;
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(RunLoadPasses(*graph).ok());
  const auto recipe =
      Compile(*graph, MakeKey(FingerprintGraph(*graph), {.axes = {{"n", 4}}}, device.fingerprint()),
              {.device = &device, .clock = &clock});
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  std::vector<std::string> texts;
  for (const ParameterExprPtr& parameter : (*recipe)->parameters)
    texts.push_back(parameter->text());
  return texts;
}

TEST(CompilerTest, WeightsThatAreReadPackedAloneHaveNoOtherForm) {
  const auto parameters = ParametersOf(R"(graph {
  input %x: f32[n, 64]
  param %q: i8[64, 320] = p0
  param %s: f32[320] = p1
  %f: f32 = Cast(%q) {to = 1}
  %w: f32 = Mul(%f, %s)
  %y: f32 = MatMul(%x, %w)
  output %y
})");
  EXPECT_THAT(parameters, Contains(HasSubstr("Pack")));
  EXPECT_THAT(parameters, Not(Contains(testing::StartsWith("Mul("))));
}

TEST(CompilerTest, WeightsThatALaunchReadsAsTheyAreHaveASlotBesideTheirPackedForm) {
  const auto parameters = ParametersOf(R"(graph {
  input %x: f32[n, 64]
  input %z: f32[64, 64]
  param %w: f32[64, 64] = p0
  %y: f32 = MatMul(%x, %w)
  %v: f32 = Sub(%z, %w)
  output %y
  output %v
})");
  EXPECT_THAT(parameters, Contains(AllOf(HasSubstr("Pack"), HasSubstr("p0"))));
  EXPECT_THAT(parameters, Contains("p0"));
}

}  // namespace
}  // namespace reprise
