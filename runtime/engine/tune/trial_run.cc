#include "runtime/engine/tune/trial_run.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/types/ignore_errors.h"

namespace reprise {
namespace {

// Rounds stop after kMaxRounds, or when the time is up; the first is distorted by bytes that have
// to be fetched from far memory.
constexpr int kMinRounds = 2;
constexpr int kMaxRounds = 8;
constexpr int64_t kBudgetNs = 60'000'000;
// The launches of one question that are timed, each with other weights.
constexpr size_t kMaxSamples = 2;
// A slice of work: the rows beyond it are left out.
constexpr double kMaxFlops = 4e8;
// One launch of this much work is enough.
constexpr double kMuchWork = 1e8;
// A library may lock, needs the weights in a form of its own and sums in another order, which
// changes the last bits of an answer: it is taken only for a clear gain.
constexpr double kForeignWorthwhile = 1.2;
// The value that operands are filled with.
constexpr float kFill = 0.0625f;

// Returns the rows of a frame that a launch is timed with; 0: all.
int64_t LiveRows(const Recipe& recipe, const Launch& launch) {
  if (recipe.rows <= 1 || launch.work.flops <= kMaxFlops) return 0;
  const double rows = static_cast<double>(recipe.rows) * kMaxFlops / launch.work.flops;
  return std::max<int64_t>(1, static_cast<int64_t>(rows));
}

// The operands of a launch that is timed. Operands that a replay writes or gathers lie side by side
// in the stream's block, not where the recipe has them: a trial touches as much memory as one
// launch does with the rows that it is timed with, not as much as all of them.
class TrialOperands {
 public:
  TrialOperands(const Recipe& recipe, int launch, const Frame& frame, absl::Span<std::byte> block) {
    const std::vector<Operand>& operands = recipe.launches[launch].operands;
    const std::vector<OperandNote>& notes = recipe.operand_notes[launch];
    size_t used = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      addresses_[i] = Resolve(operands[i], frame);
      const size_t bytes = notes[i].bytes;
      if (!IsMoved(operands[i].space) || bytes == 0) continue;
      size_t same = 0;  // In place: two operands at one address.
      while (operands[same] != operands[i] || notes[same].bytes == 0) ++same;
      if (same < i) {
        addresses_[i] = addresses_[same];
      } else if (bytes <= block.size() - used) {
        addresses_[i] = block.data() + used;
        used += std::min(AlignUp(bytes), block.size() - used);
      }
    }
  }

  static bool IsMoved(Space space) {
    return space == Space::kArena || space == Space::kInput || space == Space::kOutput;
  }
  void** addresses() { return addresses_; }

 private:
  void* addresses_[kMaxOperands];
};

}  // namespace

void TrialRun::CollectQuestions(const CompiledPlan& plan, const KernelChoices& choices) {
  std::vector<size_t> sampled;
  for (size_t node = 0; node < plan.kernels.size(); ++node) {
    const CompiledPlan::Question& asked = plan.questions[node];
    if (asked.text.empty()) continue;
    // An answer that names none of the kernels does not count.
    const std::optional<std::string> known = choices.Find(asked.text);
    if (known.has_value() && absl::c_linear_search(asked.kernels, *known)) continue;
    size_t at = 0;
    while (at < questions_.size() && questions_[at].text != asked.text) ++at;
    if (at == questions_.size()) {
      questions_.push_back({.text = asked.text, .trial = KernelTrial(asked.kernels)});
      sampled.push_back(0);
    }
    if (sampled[at] < kMaxSamples) samples_.push_back({at, plan.launches[node], sampled[at] == 0});
    ++sampled[at];
  }
}

absl::Status TrialRun::MakeTurn(
    size_t contender, const CompiledPlan& plan,
    const std::function<absl::StatusOr<std::unique_ptr<Recipe>>(const CompiledPlan&)>& bind) {
  CompiledPlan other = {.graph = plan.graph, .kernels = plan.kernels};
  for (size_t node = 0; node < plan.kernels.size(); ++node) {
    for (const Question& question : questions_) {
      if (question.text == plan.questions[node].text && contender < question.trial.size()) {
        other.kernels[node] = question.trial.kernel(contender);
      }
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Recipe> recipe, bind(other));
  RETURN_IF_ERROR(stream_.Reserve(*recipe));
  Turn turn = {.addresses = std::vector<const void*>(recipe->parameters.size(), nullptr)};
  for (const Sample& sample : samples_) {
    KernelTrial& trial = questions_[sample.question].trial;
    if (!trial.Wants(contender)) continue;
    const Launch& launch = recipe->launches[sample.launch];
    if (launch.foreign) trial.Demand(contender, kForeignWorthwhile);
    if (!IsTimed(launch, sample)) continue;
    for (const Operand& operand : launch.operands) {
      if (operand.space != Space::kParameter) continue;
      ASSIGN_OR_RETURN(Tensor value, parameters_.Peek(*recipe->parameters[operand.offset]));
      turn.addresses[operand.offset] = value.data();
      turn.parameters.push_back(std::move(value));
    }
  }
  turn.recipe = std::move(recipe);
  turns_.push_back(std::move(turn));
  return absl::OkStatus();
}

bool TrialRun::IsTimed(const Launch& launch, const Sample& sample) {
  // A trial makes weights in the form that a library wants: only few of them at a time.
  return sample.first || (!launch.foreign && launch.work.flops <= kMuchWork);
}

void TrialRun::Time(const Turn& turn, size_t contender, const Sample& sample) {
  const Recipe& recipe = *turn.recipe;
  const Launch& launch = recipe.launches[sample.launch];
  IgnoreErrors errors;
  Frame frame = stream_.MakeFrame(recipe, turn.addresses.data(), &errors);
  frame.live_rows = LiveRows(recipe, launch);
  TrialOperands operands(recipe, sample.launch, frame, stream_.Block(recipe));
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const OperandNote& note = recipe.operand_notes[sample.launch][i];
    // The fill stands for the output of the launch before, in the cache as it would be.
    if (note.role != OperandNote::Role::kInput || note.dtype != DType::kFloat32 ||
        !TrialOperands::IsMoved(launch.operands[i].space)) {
      continue;
    }
    auto floats = static_cast<int64_t>(note.bytes / sizeof(float));
    if (frame.live_rows > 0) floats = (floats * frame.live_rows + recipe.rows - 1) / recipe.rows;
    std::fill_n(static_cast<float*>(operands.addresses()[i]), floats, kFill);
  }
  const LaunchArgs args = {.operands = operands.addresses(),
                           .params = launch.params.get(),
                           .frame = &frame,
                           .launch = sample.launch,
                           .part = 0,
                           .parts = 1};
  const int64_t start = thread_clock_.NowNs();
  RunWhole(launch, args);
  questions_[sample.question].trial.Add(contender, thread_clock_.NowNs() - start);
}

absl::Status TrialRun::Round() {
  for (size_t contender = 0; contender < turns_.size(); ++contender) {
    const Turn& turn = turns_[contender];
    RETURN_IF_ERROR(stream_.Reserve(*turn.recipe));
    for (const Sample& sample : samples_) {
      Question& question = questions_[sample.question];
      if (!question.trial.Wants(contender)) continue;
      const Launch& launch = turn.recipe->launches[sample.launch];
      question.shapes = launch.detail;
      if (!IsTimed(launch, sample)) continue;
      if (!throttle_.Wait()) return absl::CancelledError("the tuning was stopped");
      Time(turn, contender, sample);
    }
  }
  for (Question& question : questions_) question.trial.EndRound();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TrialResult>> TrialRun::Run(
    const CompiledPlan& plan, const KernelChoices& choices,
    const std::function<absl::StatusOr<std::unique_ptr<Recipe>>(const CompiledPlan&)>& bind) {
  CollectQuestions(plan, choices);
  size_t contenders = 0;
  for (const Question& question : questions_) {
    contenders = std::max(contenders, question.trial.size());
  }
  for (size_t contender = 0; contender < contenders; ++contender) {
    if (!throttle_.Wait()) return absl::CancelledError("the tuning was stopped");
    RETURN_IF_ERROR(MakeTurn(contender, plan, bind));
  }
  const int64_t start = thread_clock_.NowNs();
  for (int round = 0; round < kMaxRounds; ++round) {
    if (round >= kMinRounds && thread_clock_.NowNs() - start > kBudgetNs) break;
    RETURN_IF_ERROR(Round());
  }
  std::vector<TrialResult> results;
  for (const Question& question : questions_) {
    const size_t best = question.trial.Best();
    results.push_back({.choice = {.question = question.text,
                                  .kernel = question.trial.kernel(best),
                                  .ns = question.trial.NsOf(best),
                                  .first_ns = question.trial.NsOf(0)},
                       .shapes = question.shapes});
  }
  return results;
}

}  // namespace reprise
