// The buckets of a model that a request gets.
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/engine/model/model.h"

namespace reprise {

AxisSizes Model::SizesByLabel(const std::vector<int64_t>& sizes) const {
  AxisSizes by_label;
  for (size_t i = 0; i < proof_->axes.size(); ++i) by_label[proof_->axes[i].label] = sizes[i];
  return by_label;
}

std::shared_ptr<const BucketPolicy> Model::BucketsFor(
    const RequestShape& shape, std::shared_ptr<const BucketPolicy> current) const {
  const bool counted_with_others = shape.buckets != nullptr && shape.buckets != current &&
                                   shape.rows > LargestBatchAt(*current, shape.sizes);
  return counted_with_others ? shape.buckets : current;
}

absl::Status Model::Admits(const RequestShape& shape) const {
  if (Packs(shape)) {
    if (proof_->packing->Fit({.tokens = shape.tokens, .segments = shape.rows}).has_value()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("the request has ", shape.tokens, " tokens in ",
                                                   shape.rows,
                                                   " rows: more than one replay holds"));
  }
  if (shape.exact) return absl::OkStatus();
  const AxisSizes sizes = SizesByLabel(shape.sizes);
  const std::shared_ptr<const BucketPolicy> policy = BucketsFor(shape, buckets());
  absl::Status fits = policy->FitBinding(sizes, proof_->certified).status();
  if (!fits.ok() && shape.buckets != nullptr && shape.buckets != policy) {
    // An admitted request stays so, although another set of buckets may have been learnt since.
    fits = shape.buckets->FitBinding(sizes, proof_->certified).status();
  }
  if (fits.ok()) return fits;
  return absl::InvalidArgumentError(absl::StrCat(
      "no bucket holds the request, and reprise.overflow is reject: ", fits.message()));
}

int64_t Model::LargestBatchAt(const BucketPolicy& buckets,
                              const std::vector<int64_t>& sizes) const {
  AxisSizes others;
  for (size_t i = 0; i < proof_->axes.size(); ++i) {
    if (static_cast<int>(i) == signature_->batch_axis) continue;
    const std::string& label = proof_->axes[i].label;
    const std::optional<int64_t> bucket =
        proof_->certified.contains(label) ? buckets.Fit(label, sizes[i]) : std::nullopt;
    others[label] = bucket.value_or(sizes[i]);
  }
  return std::min(buckets.LargestBatch(others), max_batch());
}

std::optional<std::vector<AxisSizes>> Model::AllBuckets(size_t most) const {
  if (proof_->packing == nullptr) return buckets()->AllBuckets(most);
  std::vector<AxisSizes> buckets;
  for (const int64_t tokens : proof_->packing->buckets())
    buckets.push_back({{kTokensAxis, tokens}});
  return buckets;
}

std::string Model::LabelOfBucket(const AxisSizes& bucket) const {
  const auto tokens = bucket.find(kTokensAxis);
  return proof_->packing == nullptr || tokens == bucket.end()
             ? BucketLabel(bucket, buckets()->batch_axis)
             : PackedLabel(tokens->second);
}

std::optional<AxisSizes> Model::FindBucket(absl::string_view label) const {
  if (proof_->packing == nullptr) return buckets()->FindBucket(label);
  for (const int64_t tokens : proof_->packing->buckets()) {
    if (PackedLabel(tokens) == label) return AxisSizes{{kTokensAxis, tokens}};
  }
  // Requests that are too long to be packed open buckets that are padded.
  const std::shared_ptr<const BucketPolicy> policy = buckets();
  std::optional<AxisSizes> bucket = policy->FindBucket(label);
  const bool opened = bucket.has_value() && absl::c_any_of(*bucket, [&](const auto& one) {
                        return policy->IsOpened(one.first, one.second);
                      });
  return opened ? bucket : std::nullopt;
}

std::vector<std::string> Model::BucketLabels() const {
  std::vector<std::string> labels;
  const auto all = AllBuckets();
  if (!all.has_value()) return labels;
  for (const AxisSizes& bucket : *all) {
    std::string label = proof_->packing == nullptr
                            ? RecipeLabel(bucket, proof_->axes.size(), buckets()->batch_axis)
                            : LabelOfBucket(bucket);
    if (label != "exact") labels.push_back(std::move(label));
  }
  return labels;
}

bool Model::has_many_buckets() const {
  constexpr double kMany = BucketPolicy::kMostListed;
  return proof_->packing == nullptr && buckets()->MostBuckets() > kMany;
}

bool Model::has_empty_front() const {
  return program_->tail != nullptr && program_->graph->live_nodes() == 0;
}

void Model::ReportBuckets() const {
  program_->owner->observer().On(BucketsInForce{traffic_.learner->Report(), BucketLabels()});
}

}  // namespace reprise
