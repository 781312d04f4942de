#include "runtime/engine/load/model_runners.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

// Limits for measuring a model of few weights, and how much more each byte of them allows: the
// memory of a stream for a run, and the operations of all runs.
constexpr int64_t kMostFrameBytes = int64_t{1} << 30;
constexpr double kMostWork = 6e10;
constexpr int64_t kPerWeightByte = 16;
constexpr double kWorkPerWeightByte = 1e7;
// Steps of plain loops: some seconds.
constexpr int64_t kMostSteps = int64_t{1} << 31;
constexpr int64_t kStepsPerWeightByte = 64;

// The sizes that requests are packed at.
constexpr PackedSizes kRoom = {.tokens = 128, .segments = 16};

Request RequestOf(const std::vector<Tensor>& inputs) {
  Request request;
  for (const Tensor& input : inputs) request.inputs.push_back({input.shape(), input.data()});
  return request;
}

}  // namespace

class ModelRunners::Runner final : public ProofRunner {
 public:
  // `form`: null for the model as it is.
  Runner(ModelRunners& owner, std::unique_ptr<Stream> stream, std::unique_ptr<Form> form)
      : owner_(owner),
        options_(owner.options_),
        stream_(std::move(stream)),
        form_(std::move(form)),
        exact_(form_ != nullptr ? form_->graph : *options_.graph,
               form_ != nullptr ? form_->fingerprint : *options_.fingerprint, options_.inputs,
               *options_.parameters, *options_.device, *options_.clock, *stream_,
               form_ != nullptr ? form_->recipes : owner.recipes_) {
    const int64_t weights = options_.parameters->leaf_bytes();
    exact_.Limit(kMostFrameBytes + kPerWeightByte * weights,
                 kMostWork + kWorkPerWeightByte * static_cast<double>(weights),
                 kMostSteps + kStepsPerWeightByte * weights);
  }
  ~Runner() override {
    if (recipe_ != nullptr) options_.parameters->Forget(*recipe_);
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) override {
    return exact_.Run(inputs);
  }
  absl::StatusOr<std::vector<std::vector<Tensor>>> RunPacked(absl::Span<const Part> parts,
                                                             const Part* behind) override;

 private:
  absl::Status CompilePacked();
  std::vector<std::vector<Tensor>> Read(absl::Span<const PackedPart> parts,
                                        const Frame& frame) const;

  ModelRunners& owner_;
  const Options& options_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Form> form_;
  ExactRunner exact_;
  std::shared_ptr<const Recipe> recipe_;  // the packed one, once it was run
};

absl::Status ModelRunners::Runner::CompilePacked() {
  if (recipe_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::shared_ptr<const Packing> packing, owner_.packing());
  const RecipeKey key = packing->KeyAt(kRoom, options_.device->fingerprint());
  ASSIGN_OR_RETURN(recipe_, Compile(packing->graph(), key,
                                    {.device = options_.device,
                                     .clock = options_.clock,
                                     .batch_symbol = kTokensAxis,
                                     .segments_symbol = kSegmentsAxis}));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Tensor>>> ModelRunners::Runner::RunPacked(
    absl::Span<const Part> parts, const Part* behind) {
  RETURN_IF_ERROR(CompilePacked());
  ASSIGN_OR_RETURN(const auto parameters, options_.parameters->TableFor(recipe_));
  RETURN_IF_ERROR(stream_->Reserve(*recipe_));
  std::vector<Request> requests;
  for (const Part& part : parts) requests.push_back(RequestOf(*part.inputs));
  if (behind != nullptr) requests.push_back(RequestOf(*behind->inputs));
  FirstDataError error(*recipe_);
  Frame frame = stream_->MakeFrame(*recipe_, parameters->addresses(), &error);
  std::vector<PackedPart> packed;
  for (size_t i = 0; i < parts.size(); ++i) {
    packed.push_back({.request = &requests[i], .rows = parts[i].rows, .length = parts[i].length});
    frame.live_rows += parts[i].rows * parts[i].length;
    frame.live_segments += parts[i].rows;
  }
  std::vector<int> positions(options_.inputs.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::byte* const inputs = stream_->inputs();
  if (behind != nullptr) {
    std::vector<PackedPart> more = packed;
    more.push_back({.request = &requests.back(), .rows = behind->rows, .length = behind->length});
    frame.live_rows += behind->length;
    GatherPacked(*recipe_, positions, more, std::nullopt, inputs);
    WriteBounds(*recipe_, packed, inputs);
  } else {
    GatherPacked(*recipe_, positions, packed, std::nullopt, inputs);
  }
  RETURN_IF_ERROR(exact_.Replay(*recipe_, frame, nullptr));
  if (error.get() != nullptr) return absl::FailedPreconditionError(RangeText(*error.get()));
  return Read(packed, frame);
}

std::vector<std::vector<Tensor>> ModelRunners::Runner::Read(absl::Span<const PackedPart> parts,
                                                            const Frame& frame) const {
  std::vector<std::vector<Tensor>> answers(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t position = 0; position < recipe_->outputs.size(); ++position) {
      const OutputTensor got = ReadPacked(*recipe_, position, parts, i, frame.outputs[position]);
      answers[i].push_back(
          Tensor::Make(recipe_->outputs[position].dtype, got.shape,
                       [&](void* data) { std::memcpy(data, got.bytes.data(), got.bytes.size()); }));
    }
  }
  return answers;
}

absl::StatusOr<std::unique_ptr<ProofRunner>> ModelRunners::NewRunner() {
  // One thread: runners work side by side. None takes a core that a request would have to wait for.
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, Stream::Create({}));
  return std::make_unique<Runner>(*this, std::move(stream), nullptr);
}

absl::StatusOr<std::unique_ptr<ProofRunner>> ModelRunners::NewRunner(const Graph& form) {
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, Stream::Create({}));
  return std::make_unique<Runner>(
      *this, std::move(stream),
      std::unique_ptr<Form>(new Form{form, FingerprintGraph(form), ExactRecipes()}));
}

absl::StatusOr<PackedForm> ModelRunners::Pack() {
  MutexLock lock(mutex_);
  if (!packed_ && options_.make_packing) packing_ = options_.make_packing();
  packed_ = true;
  RETURN_IF_ERROR(packing_.status());
  return PackedForm{.sequence_axis = (*packing_)->sequence_axis(),
                    .longest = (*packing_)->longest(),
                    .takes_any_mask = (*packing_)->takes_any_mask()};
}

absl::StatusOr<std::shared_ptr<const Packing>> ModelRunners::packing() {
  MutexLock lock(mutex_);
  return packing_;
}

}  // namespace reprise
