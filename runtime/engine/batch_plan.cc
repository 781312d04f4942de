#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/engine/model.h"

namespace reprise {
namespace {

// Sums of the same costs in another order may differ by as much.
constexpr double kRounding = 1 + 1e-9;

}  // namespace
absl::StatusOr<BatchTarget> BatchPlan::TargetFor(const std::vector<int64_t>& sizes,
                                                 bool exact) const {
  const std::vector<ModelAxis>& axes = model_->axes_;
  AxisSizes by_label;
  for (size_t i = 0; i < axes.size(); ++i) by_label[axes[i].label] = sizes[i];
  AxisSizes fitted = by_label;
  if (!exact) {
    ASSIGN_OR_RETURN(fitted, buckets_->FitBinding(by_label, model_->certified_));
  }
  BatchTarget target;
  AxisSizes bucketed;
  const bool in_bucket = !exact && buckets_->IsBucket(fitted, model_->certified_);
  target.tokens = 1;
  for (const ModelAxis& axis : axes) {
    target.sizes.push_back(fitted[axis.label]);
    // Kernels skip the rows that no request fills: along the batch axis padding costs no time.
    const int64_t computed = axis.is_batch ? by_label[axis.label] : fitted[axis.label];
    target.tokens *= std::max<int64_t>(computed, 1);
    if (in_bucket && model_->certified_.contains(axis.label)) {
      bucketed[axis.label] = fitted[axis.label];
    }
  }
  target.exact = exact || bucketed.size() < axes.size();
  target.bucket = BucketLabel(bucketed, buckets_->batch_axis);
  return target;
}

double BatchPlan::ExpectedNs(const BatchTarget& target, int64_t rows) const {
  int64_t row_size = 1;
  for (size_t i = 0; i < target.sizes.size(); ++i) {
    if (static_cast<int>(i) != model_->batch_axis_)
      row_size *= std::max<int64_t>(target.sizes[i], 1);
  }
  return cost_->Ns(rows, row_size);
}

BatchTarget BatchPlan::TargetOf(const Recipe& recipe) const {
  BatchTarget target = target_;
  target.tokens = 1;
  for (size_t i = 0; i < model_->axes_.size(); ++i) {
    const ModelAxis& axis = model_->axes_[i];
    target.sizes[i] = recipe.key.binding.axes.at(axis.symbol);
    target.tokens *= std::max<int64_t>(axis.is_batch ? rows_ : target.sizes[i], 1);
  }
  target.bucket = recipe.note.bucket;
  return target;
}

RecipeKey BatchPlan::Key(const ModelVariant* variant) const {
  return model_->KeyAt(target_.sizes, shapes_[0], variant);
}

CaptureTarget BatchPlan::CaptureTargetOf(const BatchTarget& target,
                                         std::shared_ptr<const ModelVariant> variant) const {
  return {.key = model_->KeyAt(target.sizes, shapes_[0], variant.get()),
          .bucket = target.bucket,
          .exact = target.exact,
          .variant = std::move(variant)};
}

bool BatchPlan::Served(const BatchTarget& target) {
  if (ready_ == nullptr) ready_ = model_->ready_->Snapshot();
  const auto serves = [&](const std::shared_ptr<const Recipe>& recipe) {
    const std::map<std::string, int64_t>& have = recipe->key.binding.axes;
    if (recipe->note.bucket == "exact" || !recipe->key.binding.shape_inputs.empty()) return false;
    for (size_t i = 0; i < model_->axes_.size(); ++i) {
      const auto it = have.find(model_->axes_[i].symbol);
      if (it == have.end() || it->second < target.sizes[i]) return false;
      if (it->second != target.sizes[i] && !model_->paddable_.contains(it->first)) return false;
    }
    return true;
  };
  return std::any_of(ready_->begin(), ready_->end(), serves);
}

std::optional<std::vector<int64_t>> BatchPlan::Join(const std::vector<int64_t>& sizes,
                                                    const RequestShape& shape) const {
  std::vector<int64_t> joint = sizes;
  for (size_t i = 0; i < joint.size(); ++i) {
    if (static_cast<int>(i) == model_->batch_axis_) {
      joint[i] += shape.sizes[i];
    } else if (model_->certified_.contains(model_->axes_[i].label)) {
      joint[i] = std::max(joint[i], shape.sizes[i]);
    } else if (joint[i] != shape.sizes[i]) {
      return std::nullopt;  // No certificate: only equal sizes go together.
    }
  }
  return joint;
}

void BatchPlan::Wish(const RequestShape& shape) {
  if (wished_sizes_.empty()) {
    wished_sizes_ = sizes_;
    wished_rows_ = rows_;
  }
  std::optional<std::vector<int64_t>> joint = Join(wished_sizes_, shape);
  if (!joint.has_value()) return;
  if (wished_rows_ + shape.rows > model_->LargestBatchAt(*buckets_, *joint)) return;
  wished_sizes_ = *std::move(joint);
  wished_rows_ += shape.rows;
}

bool BatchPlan::TryAdd(const RequestShape& shape, std::shared_ptr<CaptureTicket> waited) {
  if (shapes_.empty()) {
    // Its rows were counted under the set that it was measured with.
    if (shape.buckets != nullptr && shape.buckets != buckets_ &&
        shape.rows > model_->LargestBatchAt(*buckets_, shape.sizes)) {
      buckets_ = shape.buckets;
    }
    absl::StatusOr<BatchTarget> target = TargetFor(shape.sizes, shape.exact);
    if (!target.ok()) return false;
    target_ = *std::move(target);
    sizes_ = shape.sizes;
    rows_ = shape.rows;
    shapes_.push_back(shape);
    waited_.push_back(std::move(waited));
    return true;
  }
  if (!model_->batches_requests() || shape.exact || shapes_[0].exact) return false;
  if (shape.on_miss != shapes_[0].on_miss || shape.on_miss == OnMiss::kEager) return false;
  std::optional<std::vector<int64_t>> joint = Join(sizes_, shape);
  if (!joint.has_value()) return false;
  if (rows_ + shape.rows > model_->LargestBatchAt(*buckets_, *joint)) return false;
  const absl::StatusOr<BatchTarget> alone = TargetFor(shape.sizes, false);
  absl::StatusOr<BatchTarget> together = TargetFor(*joint, false);
  if (!alone.ok() || !together.ok()) return false;
  const double apart_ns = ExpectedNs(target_, rows_) + ExpectedNs(*alone, shape.rows);
  if (ExpectedNs(*together, rows_ + shape.rows) > apart_ns * kRounding) return false;
  if (model_->options_.capture != CapturePolicy::kInline && together->sizes != target_.sizes &&
      !Served(*together) && Served(target_)) {
    Wish(shape);
    return false;
  }
  target_ = *std::move(together);
  sizes_ = *std::move(joint);
  rows_ += shape.rows;
  shapes_.push_back(shape);
  waited_.push_back(std::move(waited));
  return true;
}

bool BatchPlan::full() const {
  if (shapes_.empty()) return false;
  if (!model_->batches_requests() || shapes_[0].exact) return true;
  return rows_ >= model_->LargestBatchAt(*buckets_, sizes_);
}

}  // namespace reprise
