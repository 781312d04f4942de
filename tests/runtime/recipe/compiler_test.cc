#include "runtime/recipe/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/scratch.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Recipe> CompileText(absl::string_view text) {
  const CpuDevice device(CpuDeviceOptions{.gemm_provider = GemmProvider::kOwn});
  SteadyClock clock;
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(RunLoadPasses(*graph).ok());
  auto recipe =
      Compile(*graph, MakeKey(FingerprintGraph(*graph), {.axes = {{"n", 4}}}, device.fingerprint()),
              {.device = &device, .clock = &clock});
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  return *std::move(recipe);
}

std::vector<std::string> ParametersOf(absl::string_view text) {
  const std::unique_ptr<Recipe> recipe = CompileText(text);
  std::vector<std::string> texts;
  for (const ParameterExprPtr& parameter : recipe->parameters) texts.push_back(parameter->text());
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

// Pages after all else that are never touched take no memory.
TEST(CompilerTest, WorkspacesLieBehindAllElse) {
  const std::unique_ptr<Recipe> recipe = CompileText(R"(graph {
  input %x: f32[n, 64, 64]
  %a: f32 = Exp(%x)
  %b: f32 = MatMul(%a, %x)
  %c: f32 = Exp(%b)
  %d: f32 = MatMul(%c, %a)
  %y: f32 = Neg(%d)
  output %y
})");
  const size_t front = BytesInFrontOfScratch(*recipe);
  int workspaces = 0;
  for (size_t launch = 0; launch < recipe->launches.size(); ++launch) {
    for (size_t i = 0; i < recipe->operand_notes[launch].size(); ++i) {
      const OperandNote& note = recipe->operand_notes[launch][i];
      const Operand& operand = recipe->launches[launch].operands[i];
      if (operand.space != Space::kArena) continue;
      const size_t begin = recipe->input_bytes + recipe->output_bytes + operand.offset;
      if (note.role == OperandNote::Role::kWorkspace) {
        ++workspaces;
        EXPECT_EQ(begin, front);
      } else {
        EXPECT_LE(begin + note.bytes, front);
      }
      EXPECT_LE(begin + note.bytes, recipe->frame_bytes());
    }
  }
  EXPECT_GE(workspaces, 2);
  EXPECT_LT(front, recipe->frame_bytes());
}

}  // namespace
}  // namespace reprise
