#include "runtime/engine/load/packed_trial.h"

#include <utility>

#include "runtime/engine/load/model_packer.h"
#include "runtime/engine/packing/packing_check.h"

namespace reprise {

PackedTrial::PackedTrial(const LoaderContext& context, const Model& model,
                         const std::vector<std::vector<int64_t>>& buckets,
                         std::vector<InputRange> ranges)
    : context_(context), model_(model), buckets_(buckets), ranges_(std::move(ranges)) {}

bool PackedTrial::wanted() const { return model_.options().packing != PackingMode::kOff; }

absl::Status PackedTrial::Run(const PaddingProber& prober) {
  if (given_up_) return absl::OkStatus();
  packing_ = ModelPacker(context_).Make(model_, buckets_);
  if (!packing_.ok()) return absl::OkStatus();
  PackingCheck check(**packing_, {.parameters = &model_.owner()->parameters(),
                                  .device = context_.device,
                                  .clock = context_.clock});
  const absl::Status checked = prober.Check(
      check, ranges_,
      PaddingProber::OptionsFor(model_, prober.graph(), (*packing_)->sequence_axis()), {});
  if (!checked.ok()) packing_ = checked;
  return absl::OkStatus();
}

}  // namespace reprise
