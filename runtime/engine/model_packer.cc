#include "runtime/engine/model_packer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

constexpr size_t kBatchAndSequence = 2;
constexpr int64_t kFewRows = 2;

// Empty: none.
std::string AxisInTheWay(const Model& model) {
  for (const ModelAxis& axis : model.axes()) {
    if (axis.certificate.certified) continue;
    return absl::StrCat("axis ", axis.label, " is never padded: ", axis.certificate.reason);
  }
  return "";
}

}  // namespace

void ModelPacker::Refuse(Model& model, absl::string_view reason) const {
  model.packing_ = nullptr;
  model.packing_refusal_ = std::string(reason);
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are padded, not packed: ", model.packing_refusal_));
}

bool ModelPacker::IsRefused(Model& model) const {
  if (model.options_.packing == PackingMode::kOff) return true;
  const std::string reason = AxisInTheWay(model);
  if (reason.empty()) return false;
  Refuse(model, reason);
  return true;
}

void ModelPacker::Pack(Model& model, const std::vector<std::vector<int64_t>>& buckets) const {
  if (!IsRefused(model)) Pack(model, Make(model, buckets));
}

void ModelPacker::Pack(Model& model, absl::StatusOr<std::unique_ptr<Packing>> packing) const {
  if (IsRefused(model)) return;
  if (packing.ok()) {
    model.packing_ = *std::move(packing);
  } else {
    Refuse(model, packing.status().message());
  }
}

void ModelPacker::PackByRequest(Model& model, absl::StatusOr<RequestProof::Found> found) const {
  if (!found.ok()) {
    Refuse(model, absl::StrCat(AxisInTheWay(model), "; with ranges of each request by itself: ",
                               std::string(found.status().message())));
    return;
  }
  for (size_t i = 0; i < model.axes_.size(); ++i) {
    model.axes_[i].certificate.must_count = std::move(found->must_count[i]);
  }
  PackByRequest(model, std::move(found->packing), found->reason);
}

void ModelPacker::PackByRequest(Model& model, const std::vector<std::vector<int64_t>>& buckets,
                                absl::string_view reason) const {
  PackByRequest(model, Make(model, buckets), reason);
}

void ModelPacker::PackByRequest(Model& model, absl::StatusOr<std::unique_ptr<Packing>> packing,
                                absl::string_view reason) const {
  if (!packing.ok()) {
    Refuse(model, packing.status().message());
    return;
  }
  model.packing_ = *std::move(packing);
  model.packing_reason_ = std::string(reason);
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are packed, although none may be padded: ", reason));
}

absl::StatusOr<std::unique_ptr<Packing>> ModelPacker::Make(
    const Model& model, const std::vector<std::vector<int64_t>>& buckets) const {
  if (model.axes_.size() != kBatchAndSequence || model.batch_axis_ < 0) {
    return absl::UnimplementedError("it needs a batch and one other axis");
  }
  const int sequence = model.batch_axis_ == 0 ? 1 : 0;
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
  ASSIGN_OR_RETURN(Packing packing, Packing::Make(model.graph_, options, sequence,
                                                  {.max_tokens = model.options_.max_batch_tokens,
                                                   .max_segments = max_segments}));
  return std::make_unique<Packing>(std::move(packing));
}

}  // namespace reprise
