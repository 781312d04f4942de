#include "runtime/engine/batch/batch_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/grouping.h"

namespace reprise {
namespace {

// Sums of the same costs in another order may differ by this factor.
constexpr double kRounding = 1 + 1e-9;

// Packed requests join up to this many tokens. More are computed no faster a token (products reach
// their full rate long before, and their results no longer lie in the cache), and each request
// waits for all of them.
constexpr int64_t kEnoughTokens = 512;

}  // namespace

absl::StatusOr<BatchTarget> BatchPlan::TargetFor(const std::vector<int64_t>& sizes,
                                                 bool exact) const {
  const std::vector<ModelAxis>& axes = model_->axes();
  AxisSizes by_label = model_->SizesByLabel(sizes);
  AxisSizes fitted = by_label;
  if (!exact) {
    ASSIGN_OR_RETURN(fitted, buckets_->FitBinding(by_label, model_->certified()));
  }
  BatchTarget target;
  AxisSizes bucketed;
  const bool in_bucket = !exact && buckets_->IsBucket(fitted, model_->certified());
  for (const ModelAxis& axis : axes) {
    target.sizes.push_back(fitted[axis.label]);
    if (in_bucket && model_->certified().contains(axis.label)) {
      bucketed[axis.label] = fitted[axis.label];
    }
  }
  // Kernels skip the rows that no request fills: along the batch axis padding costs no time.
  const int64_t rows = model_->batch_axis() < 0 ? 1 : sizes[model_->batch_axis()];
  target.tokens = model_->Elements(target.sizes, rows);
  target.exact = exact || bucketed.size() < axes.size();
  target.bucketed = !bucketed.empty();
  target.bucket = RecipeLabel(bucketed, axes.size(), buckets_->batch_axis);
  return target;
}

absl::StatusOr<BatchTarget> BatchPlan::PackedTargetFor(const std::vector<int64_t>& sizes) const {
  const auto fitted = model_->packing()->Fit({.tokens = sizes[0], .segments = sizes[1]});
  if (!fitted.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(sizes[0], " tokens in ", sizes[1], " rows are more than one replay holds"));
  }
  return BatchTarget{.sizes = {fitted->tokens, fitted->segments},
                     .packed = true,
                     .bucket = PackedLabel(fitted->tokens),
                     .bucketed = true,
                     .tokens = sizes[0]};
}

bool BatchPlan::FitsPacked(const PackedSizes& sizes) const {
  return sizes.tokens <= kEnoughTokens && model_->packing()->Fit(sizes).has_value();
}

const ReadyIndex& BatchPlan::ready_index() const { return model_->ready(target_.packed); }

std::set<std::string> BatchPlan::paddable() const {
  return target_.packed ? PackedAxes() : model_->Paddable();
}

const std::string& BatchPlan::cheap_symbol() const {
  static const auto* const tokens = new std::string(kTokensAxis);
  return target_.packed ? *tokens : model_->batch_symbol();
}

double BatchPlan::ExpectedNs(const BatchTarget& target, int64_t rows) const {
  return cost_->Ns(rows, model_->Elements(target.sizes, 1));
}

bool BatchPlan::SoonerOnItsOwn(const BatchTarget& larger) const {
  return ExpectedNs(larger, rows_) >
         ExpectedNs(target_, rows_) + static_cast<double>(model_->owner()->capture_ns());
}

std::optional<BatchTarget> BatchPlan::RoomierTarget(const RecipeList& ready) const {
  std::vector<int64_t> sizes = target_.sizes;
  const std::set<std::string> larger_serve = paddable();
  for (const std::shared_ptr<const Recipe>& recipe : ready) {
    if (!recipe->note.bucketed) continue;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const std::string& symbol = model_->axes()[i].symbol;
      const auto size = recipe->key.binding.axes.find(symbol);
      if (size == recipe->key.binding.axes.end() || !larger_serve.contains(symbol)) continue;
      sizes[i] = std::max(sizes[i], size->second);
    }
  }
  absl::StatusOr<BatchTarget> target = TargetFor(sizes, /*exact=*/false);
  if (target.ok() && !target->bucketed && model_->batch_axis() >= 0) {
    sizes[model_->batch_axis()] = target_.sizes[model_->batch_axis()];
    target = TargetFor(sizes, /*exact=*/false);
  }
  if (!target.ok() || target->exact || target->sizes == target_.sizes) return std::nullopt;
  if (SoonerOnItsOwn(*target)) return std::nullopt;
  return *std::move(target);
}

BatchTarget BatchPlan::TargetOf(const Recipe& recipe) const {
  BatchTarget target = target_;
  target.bucket = recipe.note.bucket;
  target.bucketed = recipe.note.bucketed;
  if (target.packed) {
    const PackedSizes sizes = PackedSizesOf(recipe.key);
    target.sizes = {sizes.tokens, sizes.segments};
    return target;
  }
  for (size_t i = 0; i < model_->axes().size(); ++i) {
    target.sizes[i] = recipe.key.binding.axes.at(model_->axes()[i].symbol);
  }
  target.tokens = model_->Elements(target.sizes, rows_);
  return target;
}

RecipeKey BatchPlan::Key(const ModelVariant* variant) const {
  return model_->KeyAt(target_, shapes_[0], variant);
}

CaptureTarget BatchPlan::CaptureTargetOf(const BatchTarget& target,
                                         std::shared_ptr<const ModelVariant> variant) const {
  return {.key = model_->KeyAt(target, shapes_[0], variant.get()),
          .bucket = target.bucket,
          .exact = target.exact,
          .bucketed = target.bucketed,
          .variant = std::move(variant)};
}

bool BatchPlan::Served(const BatchTarget& target) {
  if (ready_ == nullptr) ready_ = ready_index().Snapshot();
  return SmallestThatServes(*ready_, CaptureTargetOf(target).key, paddable(), cheap_symbol()) !=
         nullptr;
}

std::optional<std::vector<int64_t>> BatchPlan::Join(const std::vector<int64_t>& sizes,
                                                    const RequestShape& shape) const {
  std::vector<int64_t> joint = sizes;
  if (target_.packed) {
    joint[0] += shape.tokens;
    joint[1] += shape.rows;
    if (!FitsPacked({.tokens = joint[0], .segments = joint[1]})) return std::nullopt;
    return joint;
  }
  for (size_t i = 0; i < joint.size(); ++i) {
    if (static_cast<int>(i) == model_->batch_axis()) {
      joint[i] += shape.sizes[i];
    } else if (model_->certified().contains(model_->axes()[i].label)) {
      joint[i] = std::max(joint[i], shape.sizes[i]);
    } else if (joint[i] != shape.sizes[i]) {
      return std::nullopt;  // No certificate: only equal sizes go together.
    }
  }
  const int batch = model_->batch_axis();
  if (batch >= 0 && joint[batch] > model_->LargestBatchAt(*buckets_, joint)) return std::nullopt;
  return joint;
}

void BatchPlan::Wish(const RequestShape& shape) {
  if (wished_sizes_.empty()) {
    wished_sizes_ = sizes_;
    wished_rows_ = rows_;
  }
  std::optional<std::vector<int64_t>> joint = Join(wished_sizes_, shape);
  if (!joint.has_value()) return;
  wished_sizes_ = *std::move(joint);
  wished_rows_ += shape.rows;
}

bool BatchPlan::SameLengths(const RequestShape& a, const RequestShape& b) const {
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    if (static_cast<int>(i) != model_->batch_axis() && a.sizes[i] != b.sizes[i]) return false;
  }
  return true;
}

bool BatchPlan::TryAdd(const RequestShape& shape, std::shared_ptr<CaptureTicket> waited,
                       bool chosen) {
  if (shapes_.empty()) {
    buckets_ = model_->BucketsFor(shape, std::move(buckets_));
    const bool packed = model_->Packs(shape);
    sizes_ = packed ? std::vector<int64_t>{shape.tokens, shape.rows} : shape.sizes;
    absl::StatusOr<BatchTarget> target =
        packed ? PackedTargetFor(sizes_) : TargetFor(sizes_, shape.exact);
    if (!target.ok() && shape.buckets != nullptr && shape.buckets != buckets_) {
      // An admitted request stays so, although another set of buckets may have been learnt since.
      buckets_ = shape.buckets;
      target = packed ? PackedTargetFor(sizes_) : TargetFor(sizes_, shape.exact);
    }
    if (!target.ok()) return false;
    target_ = *std::move(target);
    alone_tokens_ = target_.tokens;
    rows_ = shape.rows;
    shapes_.push_back(shape);
    waited_.push_back(std::move(waited));
    return true;
  }
  if (!model_->batches_requests() || shape.exact || shapes_[0].exact) return false;
  if (shape.on_miss != shapes_[0].on_miss || shape.on_miss == OnMiss::kEager) return false;
  if (shape.own_values != shapes_[0].own_values) return false;
  if (model_->Packs(shape) != target_.packed) return false;
  std::optional<std::vector<int64_t>> joint = Join(sizes_, shape);
  if (!joint.has_value()) return false;
  absl::StatusOr<BatchTarget> together =
      target_.packed ? PackedTargetFor(*joint) : TargetFor(*joint, false);
  if (!together.ok()) return false;
  // A request without a bucket has a recipe of its exact sizes, and would pad others to them.
  if (!together->packed && !together->bucketed && !SameLengths(shapes_[0], shape)) return false;
  int64_t alone_tokens = alone_tokens_;
  if (!target_.packed) {
    const absl::StatusOr<BatchTarget> alone = TargetFor(shape.sizes, false);
    if (!alone.ok()) return false;
    alone_tokens += alone->tokens;
    const double apart_ns = ExpectedNs(target_, rows_) + ExpectedNs(*alone, shape.rows);
    const bool pays = ExpectedNs(*together, rows_ + shape.rows) <= apart_ns * kRounding &&
                      PadsLittle(static_cast<double>(alone_tokens),
                                 static_cast<double>(together->tokens), kMostSharedPadding);
    if (!chosen && !pays) return false;
  }
  if (model_->options().capture != CapturePolicy::kInline && together->sizes != target_.sizes &&
      !Served(*together) && Served(target_)) {
    Wish(shape);
    return false;
  }
  target_ = *std::move(together);
  sizes_ = *std::move(joint);
  alone_tokens_ = alone_tokens;
  rows_ += shape.rows;
  shapes_.push_back(shape);
  waited_.push_back(std::move(waited));
  return true;
}

bool BatchPlan::full() const {
  if (shapes_.empty()) return false;
  if (!model_->batches_requests() || shapes_[0].exact) return true;
  if (target_.packed) {
    return rows_ >= model_->packing()->max_segments() ||
           sizes_[0] >= std::min(kEnoughTokens, model_->packing()->buckets().back());
  }
  return rows_ >= model_->LargestBatchAt(*buckets_, sizes_);
}

std::optional<BatchPlan::Wished> BatchPlan::wished() const {
  if (wished_rows_ <= rows_) return std::nullopt;
  absl::StatusOr<BatchTarget> wanted =
      packed() ? PackedTargetFor(wished_sizes_) : TargetFor(wished_sizes_, /*exact=*/false);
  if (!wanted.ok()) return std::nullopt;
  return Wished{.target = *std::move(wanted), .rows = wished_rows_};
}

}  // namespace reprise
