#include "runtime/bucket/policy.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// The product of all sizes, kept at the largest integer where it would overflow.
int64_t Product(const AxisSizes& sizes) {
  int64_t product = 1;
  for (const auto& [axis, size] : sizes) {
    if (__builtin_mul_overflow(product, size, &product)) return std::numeric_limits<int64_t>::max();
  }
  return product;
}

absl::Status ValidateAxis(const AxisBuckets& axis) {
  if (axis.sizes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("buckets of axis '", axis.axis, "' are empty"));
  }
  int64_t previous = 0;
  for (int64_t size : axis.sizes) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("buckets of axis '", axis.axis, "': ", size, " is not positive"));
    }
    if (size <= previous) {
      return absl::InvalidArgumentError(absl::StrCat("buckets of axis '", axis.axis, "': ", size,
                                                     " after ", previous,
                                                     ", expected ascending sizes"));
    }
    previous = size;
  }
  return absl::OkStatus();
}

const AxisBuckets* FindAxis(const std::vector<AxisBuckets>& axes, absl::string_view name) {
  const auto it = absl::c_find_if(axes, [&](const AxisBuckets& axis) { return axis.axis == name; });
  return it == axes.end() ? nullptr : &*it;
}

}  // namespace

std::vector<int64_t> BucketPolicy::DefaultRows(int64_t most) {
  std::vector<int64_t> rows = {1};
  while (rows.back() <= most / 2) rows.push_back(2 * rows.back());
  return rows;
}

std::vector<int64_t> BucketPolicy::DefaultPositions() { return {16, 32, 64, 128, 256, 512}; }

BucketPolicy BucketPolicy::Default(absl::string_view batch_axis,
                                   const std::vector<std::string>& sequence_axes) {
  BucketPolicy policy;
  policy.batch_axis = std::string(batch_axis);
  if (!batch_axis.empty()) {
    policy.axes.push_back({policy.batch_axis, DefaultRows()});
  }
  for (const std::string& axis : sequence_axes) {
    policy.axes.push_back({axis, DefaultPositions()});
  }
  return policy;
}

absl::Status BucketPolicy::Validate() const {
  std::set<std::string> seen;
  for (const AxisBuckets& axis : axes) {
    RETURN_IF_ERROR(ValidateAxis(axis));
    if (!seen.insert(axis.axis).second) {
      return absl::InvalidArgumentError(absl::StrCat("axis '", axis.axis, "' has buckets twice"));
    }
  }
  if (!batch_axis.empty() && seen.count(batch_axis) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("batch axis '", batch_axis, "' has no buckets"));
  }
  if (max_batch_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_batch_tokens is ", max_batch_tokens, ", expected at least 1"));
  }
  return absl::OkStatus();
}

std::vector<int64_t> BucketPolicy::DropRefused(absl::string_view axis,
                                               const std::function<bool(int64_t)>& accepts) {
  std::vector<int64_t> dropped;
  const auto buckets =
      absl::c_find_if(axes, [&](const AxisBuckets& buckets) { return buckets.axis == axis; });
  if (buckets == axes.end()) return dropped;
  while (!buckets->sizes.empty() && !accepts(buckets->sizes.back())) {
    dropped.insert(dropped.begin(), buckets->sizes.back());
    buckets->sizes.pop_back();
  }
  if (buckets->sizes.empty()) axes.erase(buckets);
  return dropped;
}

std::optional<int64_t> BucketPolicy::Fit(absl::string_view axis, int64_t size) const {
  const AxisBuckets* buckets = FindAxis(axes, axis);
  if (buckets == nullptr) return std::nullopt;
  const auto it = absl::c_lower_bound(buckets->sizes, size);
  if (it == buckets->sizes.end()) return std::nullopt;
  return *it;
}

std::optional<int64_t> BucketPolicy::Largest(absl::string_view axis) const {
  const AxisBuckets* buckets = FindAxis(axes, axis);
  if (buckets == nullptr || buckets->sizes.empty()) return std::nullopt;
  return buckets->sizes.back();
}

bool BucketPolicy::WithinLimit(const AxisSizes& sizes) const {
  const auto batch = sizes.find(batch_axis);
  const AxisBuckets* buckets = FindAxis(axes, batch_axis);
  if (batch == sizes.end() || buckets == nullptr) return true;
  return batch->second <= buckets->sizes.front() || Product(sizes) <= max_batch_tokens;
}

absl::StatusOr<AxisSizes> BucketPolicy::FitBinding(const AxisSizes& sizes,
                                                   const std::set<std::string>& certified) const {
  AxisSizes fitted = sizes;
  for (auto& [axis, size] : fitted) {
    if (certified.count(axis) == 0 || FindAxis(axes, axis) == nullptr) continue;
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis '", axis, "' has size ", size, ", expected at least 1"));
    }
    const std::optional<int64_t> bucket = Fit(axis, size);
    if (!bucket.has_value()) {
      if (overflow == Overflow::kExact) return sizes;
      return absl::InvalidArgumentError(absl::StrCat("axis '", axis, "' has size ", size,
                                                     ", the largest bucket is ", *Largest(axis)));
    }
    size = *bucket;
  }
  if (certified.count(batch_axis) == 0 || WithinLimit(fitted)) return fitted;
  if (overflow == Overflow::kExact) return sizes;
  return absl::InvalidArgumentError(
      absl::StrCat("axis '", batch_axis, "' has size ", sizes.at(batch_axis),
                   ", the largest bucket beside the other axes is ", LargestBatch(fitted), " (",
                   Product(fitted), " elements against max_batch_tokens ", max_batch_tokens, ")"));
}

bool BucketPolicy::IsBucket(const AxisSizes& sizes, const std::set<std::string>& certified) const {
  bool any = false;
  for (const auto& [axis, size] : sizes) {
    const AxisBuckets* buckets = FindAxis(axes, axis);
    if (buckets == nullptr || certified.count(axis) == 0) continue;
    if (!absl::c_binary_search(buckets->sizes, size)) return false;
    any = true;
  }
  return any && (certified.count(batch_axis) == 0 || WithinLimit(sizes));
}

std::vector<AxisSizes> BucketPolicy::AllBuckets() const {
  if (axes.empty()) return {};
  std::vector<AxisSizes> bindings = {{}};
  for (const AxisBuckets& axis : axes) {
    std::vector<AxisSizes> longer;
    for (const AxisSizes& binding : bindings) {
      for (int64_t size : axis.sizes) {
        longer.push_back(binding);
        longer.back()[axis.axis] = size;
      }
    }
    bindings = std::move(longer);
  }
  std::erase_if(bindings, [&](const AxisSizes& binding) { return !WithinLimit(binding); });
  return bindings;
}

std::vector<std::string> BucketPolicy::Labels() const {
  std::vector<std::string> labels;
  for (const AxisSizes& sizes : AllBuckets()) labels.push_back(BucketLabel(sizes, batch_axis));
  return labels;
}

int64_t BucketPolicy::LargestBatch(const AxisSizes& others) const {
  const AxisBuckets* buckets = FindAxis(axes, batch_axis);
  if (buckets == nullptr || buckets->sizes.empty()) return 1;
  AxisSizes sizes = others;
  for (auto batch = buckets->sizes.rbegin(); batch != buckets->sizes.rend(); ++batch) {
    sizes[batch_axis] = *batch;
    if (WithinLimit(sizes)) return *batch;
  }
  return buckets->sizes.front();
}

std::string BucketLabel(const AxisSizes& bucketed, absl::string_view batch_axis) {
  if (bucketed.empty()) return "exact";
  std::vector<std::string> parts;
  const auto batch = bucketed.find(std::string(batch_axis));
  if (batch != bucketed.end()) parts.push_back(absl::StrCat("b", batch->second));
  const size_t sequences = bucketed.size() - parts.size();
  for (const auto& [axis, size] : bucketed) {
    if (axis == batch_axis) continue;
    parts.push_back(sequences == 1 ? absl::StrCat("s", size) : absl::StrCat(axis, "_", size));
  }
  return absl::StrJoin(parts, "_");
}

}  // namespace reprise
