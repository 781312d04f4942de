#include "runtime/engine/packed_trial.h"

#include <utility>

#include "runtime/engine/model_packer.h"

namespace reprise {

PackedTrial::PackedTrial(const LoaderContext& context, const Model& model,
                         const std::vector<std::vector<int64_t>>& buckets,
                         std::vector<InputRange> ranges)
    : context_(context), model_(model), buckets_(buckets), ranges_(std::move(ranges)) {}

size_t PackedTrial::rounds() const {
  return model_.options().packing == PackingMode::kOff ? 0 : PackingCheck::kRounds;
}

absl::Status PackedTrial::Run(size_t round, const PaddingProber& prober) {
  if (given_up_) return absl::OkStatus();
  {
    MutexLock lock(mutex_);
    if (!tried_) Begin();
    if (!packing_.ok()) return absl::OkStatus();
  }
  absl::Status checked = prober.Check(
      *check_, round, ranges_, PaddingProber::OptionsFor(model_, (*packing_)->sequence_axis()));
  if (checked.ok()) return absl::OkStatus();
  MutexLock lock(mutex_);
  if (wrong_.ok()) wrong_ = std::move(checked);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Packing>> PackedTrial::Take() {
  MutexLock lock(mutex_);
  check_.reset();
  if (!wrong_.ok()) return wrong_;
  return std::move(packing_);
}

void PackedTrial::Begin() {
  tried_ = true;
  packing_ = ModelPacker(context_).Make(model_, buckets_);
  if (!packing_.ok()) return;
  check_.emplace(**packing_, PackingCheck::Options{.parameters = &model_.owner()->parameters(),
                                                   .device = context_.device,
                                                   .clock = context_.clock});
}

}  // namespace reprise
