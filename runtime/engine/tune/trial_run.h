// TrialRun: times the kernels that the open questions of a compiled plan are about.
//
// For each turn of each candidate there is a recipe, bound from the plan. Its launches run in the
// order of a replay, a few for each question: so the weights of one have left the caches when the
// next comes to it, as in a replay. Operands hold numbers of ordinary size; the results are not
// read. One thread: under load each core has a replay of its own.
//
// Large launches are timed on a part of their rows where the kernel takes live rows, so that no
// slice of work is long.
//
// Ownership: borrows all. Threads: the stream's caller.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/tune/background_throttle.h"
#include "runtime/engine/tune/kernel_trial.h"
#include "runtime/recipe/compiler.h"

namespace reprise {

// The outcome of timing for one question.
struct TrialResult {
  KernelChoice choice;
  std::string shapes;  // shapes of a launch, for people
};

class TrialRun {
 public:
  TrialRun(ParameterStore& parameters, Stream& stream, BackgroundThrottle& throttle,
           const Clock& thread_clock)
      : parameters_(parameters),
        stream_(stream),
        throttle_(throttle),
        thread_clock_(thread_clock) {}

  // Returns the answers to the questions of `plan` that `choices` does not know. `bind` makes the
  // recipe of a plan. CANCELLED when the work was stopped.
  absl::StatusOr<std::vector<TrialResult>> Run(
      const CompiledPlan& plan, const KernelChoices& choices,
      const std::function<absl::StatusOr<std::unique_ptr<Recipe>>(const CompiledPlan&)>& bind);

 private:
  struct Question {
    std::string text;
    KernelTrial trial;
    std::string shapes;
  };
  // One launch that is timed, by position in the recipe of every contender.
  struct Sample {
    size_t question;
    int launch;
    bool first;  // the first of its question
  };
  // The recipe in which each question has its contender of one number.
  struct Turn {
    std::shared_ptr<const Recipe> recipe;
    std::vector<Tensor> parameters;  // used by the launches that are timed
    std::vector<const void*> addresses;
  };

  void CollectQuestions(const CompiledPlan& plan, const KernelChoices& choices);
  absl::Status MakeTurn(
      size_t contender, const CompiledPlan& plan,
      const std::function<absl::StatusOr<std::unique_ptr<Recipe>>(const CompiledPlan&)>& bind);
  absl::Status Round();
  // Returns whether `launch` is timed at `sample`, or the first one of its question is enough.
  static bool IsTimed(const Launch& launch, const Sample& sample);
  void Time(const Turn& turn, size_t contender, const Sample& sample);

  ParameterStore& parameters_;
  Stream& stream_;
  BackgroundThrottle& throttle_;
  const Clock& thread_clock_;
  std::vector<Question> questions_;
  std::vector<Sample> samples_;  // sorted in the order of launches
  std::vector<Turn> turns_;      // one per contender
};

}  // namespace reprise
