#include "runtime/engine/load/exact_runner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/engine/load/made_up_inputs.h"
#include "runtime/engine/replay/time_launch.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/passes/kit/precision_rules.h"

namespace reprise {
namespace {

// Takes the steps of the watched work from `left`, until none are.
class StepsWatch final : public WorkWatch {
 public:
  explicit StepsWatch(int64_t& left) : left_(left) {}
  bool Ends() const override {
    left_ = std::max<int64_t>(left_ - kStepsPerLook, 0);
    return left_ == 0;
  }

 private:
  int64_t& left_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Recipe>> ExactRunner::RecipeFor(
    const std::vector<Tensor>& inputs) {
  std::vector<const Shape*> shapes;
  for (const Tensor& input : inputs) shapes.push_back(&input.shape());
  Binding binding;
  ASSIGN_OR_RETURN(binding.axes, signature_.Match(shapes));
  if (std::shared_ptr<const Recipe> known = recipes_.Find(binding)) return known;
  ASSIGN_OR_RETURN(
      std::shared_ptr<const Recipe> recipe,
      Compile(graph_,
              MakeKey(fingerprint_, binding, device_.fingerprint(),
                      {.precision = passes_.precision,
                       .weights = passes_.weights,
                       .by_node = passes_.nodes == nullptr ? "" : passes_.nodes->digest()}),
              {.device = &device_,
               .clock = &clock_,
               .passes = passes_,
               .batch_symbol = batch_symbol_}));
  if (static_cast<int64_t>(recipe->frame_bytes()) > most_frame_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a run at ", binding.ToString(), " needs ", recipe->frame_bytes(),
                     " bytes of memory; while a model is loaded runs of up to ", most_frame_bytes_,
                     " bytes are tried"));
  }
  recipes_.Add(binding, recipe);
  return recipe;
}

absl::StatusOr<Frame> ExactRunner::FrameFor(const std::shared_ptr<const Recipe>& recipe,
                                            const std::vector<Tensor>& inputs,
                                            ReplayErrors& errors) {
  ASSIGN_OR_RETURN(const auto parameters, parameters_.TableFor(recipe));
  RETURN_IF_ERROR(stream_.Reserve(*recipe));
  // The store keeps the table while the recipe lives, so the addresses stay.
  const Frame frame = stream_.MakeFrame(*recipe, parameters->addresses(), &errors);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].bytes() == 0) continue;
    std::memcpy(stream_.inputs() + recipe->inputs[i].offset, inputs[i].data(), inputs[i].bytes());
  }
  return frame;
}

absl::Status ExactRunner::Replay(const Recipe& recipe, const Frame& frame,
                                 const FirstDataError* end) {
  StepsWatch watch(steps_left_);
  const int ended = stream_.Replay(recipe, frame, end);
  if (ended < 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      recipe.launches[static_cast<size_t>(ended)].node, " takes too long in a run at ",
      recipe.key.binding.ToString(), ": while a model is loaded short ones are tried"));
}

absl::StatusOr<std::vector<Tensor>> ExactRunner::Run(const std::vector<Tensor>& inputs) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe, RecipeFor(inputs));
  if (recipe->work > work_left_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a run at ", recipe->key.binding.ToString(), " takes ", recipe->work,
        " operations; while a model is loaded runs of up to ", most_work_, " together are tried"));
  }
  work_left_ -= recipe->work;
  FirstDataError errors(*recipe);
  ASSIGN_OR_RETURN(const Frame frame, FrameFor(recipe, inputs, errors));
  RETURN_IF_ERROR(Replay(*recipe, frame, &errors));
  if (const DataError* error = errors.get()) {
    if (!error->failure.ok()) return error->failure;
    absl::Status status = absl::InvalidArgumentError(RangeText(*error));
    SetRangePayload(status, error->low, error->high);
    return status;
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < recipe->outputs.size(); ++i) {
    const TensorSlot& slot = recipe->outputs[i];
    outputs.push_back(Tensor::Make(slot.dtype, slot.shape, [&](void* data) {
      if (slot.bytes > 0) std::memcpy(data, frame.outputs[i], slot.bytes);
    }));
  }
  return outputs;
}

absl::StatusOr<std::map<std::string, int64_t>> ExactRunner::TimeNodes(
    const std::vector<Tensor>& inputs, int repeats) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe, RecipeFor(inputs));
  FirstDataError errors(*recipe);
  ASSIGN_OR_RETURN(const Frame frame, FrameFor(recipe, inputs, errors));
  std::map<std::string, int64_t> least;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::map<std::string, int64_t> times;
    for (size_t i = 0; i < recipe->launches.size(); ++i) {
      times[recipe->launches[i].node] += TimeLaunch(*recipe, frame, static_cast<int>(i), clock_);
    }
    for (const auto& [node, ns] : times) {
      const auto known = least.emplace(node, ns).first;
      known->second = std::min(known->second, ns);
    }
  }
  return least;
}

}  // namespace reprise
