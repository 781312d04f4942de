#include "runtime/engine/model_packer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

constexpr size_t kBatchAndSequence = 2;
constexpr int64_t kFewRows = 2;

}  // namespace

void ModelPacker::Refuse(Model& model, absl::string_view reason) const {
  model.packing_ = nullptr;
  model.packing_refusal_ = std::string(reason);
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are padded, not packed: ", model.packing_refusal_));
}

bool ModelPacker::Pack(Model& model, const std::vector<std::vector<int64_t>>& buckets) const {
  if (model.options_.packing == PackingMode::kOff) return false;
  int sequence = -1;
  for (size_t i = 0; i < model.axes_.size(); ++i) {
    const ModelAxis& axis = model.axes_[i];
    if (!axis.certificate.certified) {
      Refuse(model,
             absl::StrCat("axis ", axis.label, " is never padded: ", axis.certificate.reason));
      return false;
    }
    if (!axis.is_batch) sequence = static_cast<int>(i);
  }
  if (model.axes_.size() != kBatchAndSequence || model.batch_axis_ < 0) {
    Refuse(model, "it needs a batch and one other axis");
    return false;
  }
  int64_t max_segments = buckets[model.batch_axis_].back();
  if (model.options_.max_batch_size > 0) {
    max_segments = std::min(max_segments, model.options_.max_batch_size);
  }
  PackOptions options = {.batch = model.axes_[model.batch_axis_].symbol,
                         .sequence = model.axes_[sequence].symbol};
  // Buckets beyond what the model takes are dropped later; so here.
  for (const int64_t length : buckets[sequence]) {
    const Binding binding = {.axes = {{options.batch, kFewRows}, {options.sequence, length}}};
    if (options.longest > 0 && !Specialize(model.graph_, binding).ok()) break;
    options.longest = length;
  }
  absl::StatusOr<Packing> packing =
      Packing::Make(model.graph_, options, sequence,
                    {.max_tokens = model.options_.max_batch_tokens, .max_segments = max_segments});
  if (!packing.ok()) {
    Refuse(model, packing.status().message());
    return false;
  }
  model.packing_ = std::make_unique<Packing>(*std::move(packing));
  return true;
}

}  // namespace reprise
