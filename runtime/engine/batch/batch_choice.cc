// Which of the waiting requests go into one plan: by the cost of replays.

#include "runtime/bucket/grouping.h"
#include "runtime/engine/batch/batch_plan.h"

namespace reprise {

std::vector<size_t> BatchPlan::Choose(absl::Span<const RequestShape* const> waiting) const {
  const RequestShape& head = *waiting[0];
  if (!model_->batches_requests() || head.exact || head.on_miss == OnMiss::kEager) return {0};
  if (model_->Packs(head)) return ChoosePacked(waiting);
  if (model_->packs_whole_requests()) return {0};
  const std::vector<ModelAxis>& axes = model_->axes();
  const auto goes_with_head = [&](const RequestShape& shape) {
    if (shape.exact || shape.on_miss != head.on_miss) return false;
    if (shape.own_values != head.own_values) return false;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].certificate.certified && shape.sizes[i] != head.sizes[i]) return false;
    }
    return true;
  };
  std::vector<size_t> others;  // all but the batch
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].is_batch) others.push_back(i);
  }
  std::vector<size_t> positions;
  std::vector<WaitingRequest> requests;
  for (size_t position = 0; position < waiting.size(); ++position) {
    const RequestShape& shape = *waiting[position];
    if (!goes_with_head(shape)) continue;
    WaitingRequest& request = requests.emplace_back(WaitingRequest{.rows = shape.rows});
    for (const size_t i : others) {
      const int64_t size = shape.sizes[i];
      request.sizes.push_back(model_->certified().contains(axes[i].label)
                                  ? buckets_->Fit(axes[i].label, size).value_or(size)
                                  : size);
    }
    positions.push_back(position);
  }
  if (requests.size() == 1) return {0};
  const GroupingLimits limits = {.most_rows =
                                     [&](absl::Span<const int64_t> sizes) {
                                       std::vector<int64_t> all(sizes.begin(), sizes.end());
                                       all.insert(all.begin() + model_->batch_axis(), 1);
                                       return model_->LargestBatchAt(*buckets_, all);
                                     },
                                 .measure = model_->measure().Of(others),
                                 .most_padding = kMostSharedPadding};
  for (const std::vector<size_t>& group : GroupByCost(requests, *cost_, limits).groups) {
    if (group[0] != 0) continue;
    std::vector<size_t> chosen;
    for (const size_t member : group) chosen.push_back(positions[member]);
    return chosen;
  }
  return {0};
}

// Without padding a shared replay costs nothing extra: first come, first served, while there is
// room.
std::vector<size_t> BatchPlan::ChoosePacked(absl::Span<const RequestShape* const> waiting) const {
  std::vector<size_t> chosen;
  PackedSizes sizes;
  for (size_t position = 0; position < waiting.size(); ++position) {
    const RequestShape& shape = *waiting[position];
    if (!model_->Packs(shape) || shape.on_miss != waiting[0]->on_miss) continue;
    if (shape.own_values != waiting[0]->own_values) continue;
    const PackedSizes joint = {sizes.tokens + shape.tokens, sizes.segments + shape.rows};
    if (position > 0 && !FitsPacked(joint)) continue;
    sizes = joint;
    chosen.push_back(position);
  }
  return chosen;
}

}  // namespace reprise
