#include "runtime/generate/step_recipes.h"

#include "runtime/passes/paged/paged_form.h"
#include "runtime/recipe/compiler.h"
#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

using StepRecipesTest = GeneratorTest;

TEST_F(StepRecipesTest, MostAreMadeWithoutAPassAndAreWhatThePassesMake) {
  Make({.context = 256, .max_running = 16});
  ASSERT_NE(generator, nullptr);
  std::vector<std::string> outputs;
  for (const ModelIo& output : model_->outputs()) outputs.push_back(output.name);
  auto form =
      MakePagedForm(Engine::SymbolicGraph(*model_, /*packed=*/false), outputs, {.context = 256});
  ASSERT_TRUE(form.ok()) << form.status();
  ModelVariant variant;
  variant.graph = std::move(form->graph);
  variant.fingerprint = FingerprintGraph(*variant.graph);
  int without_passes = 0;
  for (const StepRecipe& one : generator->recipes().all()) {
    const Recipe& made = *one.recipe;
    without_passes += made.times.passes_ns == 0 ? 1 : 0;
    const auto compiled = model_->CompileAt(made.key, &variant, fixture_.engine.options());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const Recipe& wanted = **compiled;
    EXPECT_EQ(made.arena_bytes, wanted.arena_bytes) << one.tokens;
    ASSERT_EQ(made.launches.size(), wanted.launches.size()) << one.tokens;
    for (size_t i = 0; i < made.launches.size(); ++i) {
      const Launch &launch = made.launches[i], &expected = wanted.launches[i];
      EXPECT_EQ(launch.kernel, expected.kernel) << one.tokens;
      EXPECT_EQ(launch.node, expected.node) << one.tokens;
      EXPECT_EQ(launch.detail, expected.detail) << one.tokens;
      EXPECT_TRUE(launch.operands == expected.operands) << launch.kernel;
    }
  }
  EXPECT_GE(without_passes, 4);
}

}  // namespace
}  // namespace reprise
