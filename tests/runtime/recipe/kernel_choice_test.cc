// The compiler's choice of kernels, given the times that were measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

constexpr char kProductGraph[] = R"(graph {
  input %x: f32[batch, 64]
  param %w: f32[64, 32] = p0
  %h: f32 = MatMul(%x, %w)
  %y: f32 = Sigmoid(%h)
  output %y
})";

class KernelChoiceTest : public testing::Test {
 protected:
  KernelChoiceTest() {
    auto graph = Parse(kProductGraph);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
    EXPECT_TRUE(RunLoadPasses(graph_).ok());
    key_ = MakeKey(FingerprintGraph(graph_), {.axes = {{"batch", 4}}}, device_.fingerprint());
    CompiledPlan plan;
    Compiled(&plan);
    for (const CompiledPlan::Question& question : plan.questions) {
      if (!question.text.empty()) question_ = question;
    }
    EXPECT_GE(question_.kernels.size(), 3u);
    EXPECT_EQ(question_.kernels.back(), "gemm_openblas");
  }

  std::unique_ptr<Recipe> Compiled(CompiledPlan* plan = nullptr) {
    auto recipe = Compile(graph_, key_,
                          {.device = &device_,
                           .clock = &clock_,
                           .choices = &choices_,
                           .hold_second =
                               [this](const ParameterExpr&) {
                                 ++asked_for_room_;
                                 return has_room_;
                               },
                           .plan = plan});
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    return *std::move(recipe);
  }
  void Answer(const std::string& kernel) { choices_.Set({question_.text, kernel, 1, 2}); }

  CpuDevice device_{DetectIsa()};
  SteadyClock clock_;
  Graph graph_;
  RecipeKey key_;
  KernelChoices choices_;
  bool has_room_ = true;
  int asked_for_room_ = 0;
  CompiledPlan::Question question_;
};

TEST_F(KernelChoiceTest, OpenQuestionGetsTheFirstKernelAndIsCounted) {
  const auto recipe = Compiled();
  EXPECT_EQ(recipe->launches[0].kernel, question_.kernels[0]);
  EXPECT_EQ(recipe->timeable, 1);
  EXPECT_EQ(recipe->untimed, 1);
}

TEST_F(KernelChoiceTest, KnownAnswerIsTaken) {
  Answer(question_.kernels[1]);
  const auto recipe = Compiled();
  EXPECT_EQ(recipe->launches[0].kernel, question_.kernels[1]);
  EXPECT_EQ(recipe->timeable, 1);
  EXPECT_EQ(recipe->untimed, 0);
}

TEST_F(KernelChoiceTest, AnswerThatIsNoKernelLeavesTheQuestionOpen) {
  Answer("gemm_of_another_build");
  const auto recipe = Compiled();
  EXPECT_EQ(recipe->launches[0].kernel, question_.kernels[0]);
  EXPECT_EQ(recipe->untimed, 1);
}

TEST_F(KernelChoiceTest, AnswerThatHoldsWeightsTwiceNeedsLeave) {
  Answer("gemm_openblas");
  EXPECT_EQ(Compiled()->launches[0].kernel, "gemm_openblas");
  has_room_ = false;
  const auto recipe = Compiled();
  EXPECT_EQ(recipe->launches[0].kernel, question_.kernels[0]);
  EXPECT_EQ(recipe->untimed, 0);
}

TEST_F(KernelChoiceTest, PlanThatIsBoundAgainTakesNoRoomForWeights) {
  CompiledPlan plan;
  Compiled(&plan);
  Answer("gemm_openblas");
  bool holds = true;
  const auto untimed = [&] {
    const auto again = Rebind(plan, graph_, key_,
                              {.device = &device_,
                               .clock = &clock_,
                               .choices = &choices_,
                               .hold_second =
                                   [this](const ParameterExpr&) {
                                     ++asked_for_room_;
                                     return true;
                                   },
                               .holds = [&](const ParameterExpr&) { return holds; }});
    EXPECT_TRUE(again.ok()) << again.status();
    return (*again)->untimed;
  };
  EXPECT_EQ(untimed(), 1) << "the answer could be taken";
  holds = false;
  EXPECT_EQ(untimed(), 0) << "it could not";
  EXPECT_EQ(asked_for_room_, 0);
}

TEST_F(KernelChoiceTest, StoredPlanOfAnotherKernelThanTheAnswerIsToBeTuned) {
  CompiledPlan plan;
  Compiled(&plan);
  Answer(question_.kernels[1]);
  const auto again =
      Rebind(plan, graph_, key_, {.device = &device_, .clock = &clock_, .choices = &choices_});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->launches[0].kernel, question_.kernels[0]);
  EXPECT_EQ((*again)->untimed, 1);
}

}  // namespace
}  // namespace reprise
