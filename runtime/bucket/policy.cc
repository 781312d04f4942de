#include "runtime/bucket/policy.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

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

// A bucket's label, axis by axis: its size follows the prefix.
struct LabelPart {
  std::string axis;
  std::string prefix;
};

std::vector<LabelPart> LabelParts(const AxisSizes& bucketed, absl::string_view batch_axis) {
  std::vector<LabelPart> parts;
  const bool batch = bucketed.contains(std::string(batch_axis));
  if (batch) parts.push_back({std::string(batch_axis), "b"});
  const bool alone = bucketed.size() - parts.size() == 1;
  for (const auto& [axis, size] : bucketed) {
    if (axis != batch_axis) parts.push_back({axis, alone ? "s" : absl::StrCat(axis, "_")});
  }
  return parts;
}

}  // namespace

int64_t AxisBuckets::After(int64_t size) const {
  // Kernels compute whole vectors and tiles: multiples of this waste nothing.
  constexpr int64_t kTile = 16;
  const int64_t most = size + size / 4;
  const int64_t tiles = std::lcm(step, kTile);
  int64_t next = most / tiles * tiles;
  if (next <= size) next = most / step * step;
  if (next <= size) next = size + step;
  return std::min(next, opens_to);
}

std::optional<int64_t> AxisBuckets::Fit(int64_t size) const {
  const auto it = absl::c_lower_bound(sizes, size);
  if (it != sizes.end()) return *it;
  if (size > opens_to) return std::nullopt;
  int64_t opened = sizes.back();
  while (opened < size) opened = After(opened);
  return opened;
}

std::vector<int64_t> AxisBuckets::NextOpened(size_t most) const {
  std::vector<int64_t> opened;
  for (int64_t size = sizes.back(); size < opens_to && opened.size() < most;) {
    opened.push_back(size = After(size));
  }
  return opened;
}

std::string AxisBuckets::OpeningText() const {
  constexpr size_t kShown = 3;
  const std::vector<int64_t> opened = NextOpened(kShown + 1);
  if (opened.size() <= kShown) return absl::StrJoin(opened, ", ");
  return absl::StrCat(absl::StrJoin(opened.begin(), opened.begin() + kShown, ", "),
                      " and so on up to ", opens_to);
}

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
  return buckets == nullptr ? std::nullopt : buckets->Fit(size);
}

std::optional<int64_t> BucketPolicy::Largest(absl::string_view axis) const {
  const AxisBuckets* buckets = FindAxis(axes, axis);
  if (buckets == nullptr || buckets->sizes.empty()) return std::nullopt;
  return buckets->Largest();
}

bool BucketPolicy::IsOpened(absl::string_view axis, int64_t size) const {
  const AxisBuckets* buckets = FindAxis(axes, axis);
  return buckets != nullptr && size > buckets->sizes.back() && buckets->Fit(size) == size;
}

int64_t BucketPolicy::Elements(const AxisSizes& sizes) const {
  absl::InlinedVector<int64_t, 4> by_position;
  if (measured.empty()) {
    for (const auto& [axis, size] : sizes) by_position.push_back(size);
    return SizeMeasure().Elements(by_position);
  }
  for (const std::string& axis : measured) {
    const auto size = sizes.find(axis);
    by_position.push_back(size == sizes.end() ? 1 : size->second);
  }
  return measure.Elements(by_position);
}

bool BucketPolicy::OpensTooMuch(const AxisSizes& sizes) const {
  const auto opened = [&](const auto& one) { return IsOpened(one.first, one.second); };
  if (!absl::c_any_of(sizes, opened)) return false;
  AxisSizes row = sizes;
  if (const auto rows = row.find(batch_axis); rows != row.end()) rows->second = 1;
  return Elements(row) > max_opened_elements;
}

bool BucketPolicy::WithinLimit(const AxisSizes& sizes) const {
  if (OpensTooMuch(sizes)) return false;
  const auto batch = sizes.find(batch_axis);
  const AxisBuckets* buckets = FindAxis(axes, batch_axis);
  if (batch == sizes.end() || buckets == nullptr) return true;
  return batch->second <= buckets->sizes.front() || Elements(sizes) <= max_batch_tokens;
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
  if (OpensTooMuch(fitted)) return sizes;
  if (certified.count(batch_axis) == 0 || WithinLimit(fitted)) return fitted;
  if (overflow == Overflow::kExact) return sizes;
  return absl::InvalidArgumentError(
      absl::StrCat("axis '", batch_axis, "' has size ", sizes.at(batch_axis),
                   ", the largest bucket with the other axes is ", LargestBatch(fitted), " (",
                   Elements(fitted), " elements against max_batch_tokens ", max_batch_tokens, ")"));
}

bool BucketPolicy::IsBucket(const AxisSizes& sizes, const std::set<std::string>& certified) const {
  bool any = false;
  for (const auto& [axis, size] : sizes) {
    const AxisBuckets* buckets = FindAxis(axes, axis);
    if (buckets == nullptr || certified.count(axis) == 0) continue;
    if (buckets->Fit(size) != size) return false;
    any = true;
  }
  return any && !OpensTooMuch(sizes) && (certified.count(batch_axis) == 0 || WithinLimit(sizes));
}

std::optional<std::vector<AxisSizes>> BucketPolicy::AllBuckets(size_t most) const {
  std::vector<AxisSizes> buckets;
  if (axes.empty()) return buckets;
  // Axes that are not chosen yet have their smallest size: a binding over the limit then stays over
  // it.
  AxisSizes sizes;
  for (const AxisBuckets& axis : axes) sizes[axis.axis] = axis.sizes.front();
  const auto choose = [&](auto& self, size_t at) -> bool {
    if (at == axes.size()) {
      if (buckets.size() == most) return false;
      buckets.push_back(sizes);
      return true;
    }
    int64_t& size = sizes[axes[at].axis];
    for (const int64_t one : axes[at].sizes) {
      size = one;
      if (!WithinLimit(sizes)) break;
      if (!self(self, at + 1)) return false;
    }
    size = axes[at].sizes.front();
    return true;
  };
  if (!choose(choose, 0)) return std::nullopt;
  return buckets;
}

double BucketPolicy::MostBuckets() const {
  double count = axes.empty() ? 0 : 1;
  for (const AxisBuckets& axis : axes) count *= static_cast<double>(axis.sizes.size());
  return count;
}

std::optional<AxisSizes> BucketPolicy::FindBucket(absl::string_view label) const {
  if (axes.empty()) return std::nullopt;
  // Names of axes may hold digits and underscores, but the order of the names is known.
  AxisSizes sizes;
  for (const AxisBuckets& axis : axes) sizes[axis.axis] = axis.sizes.front();
  absl::string_view left = label;
  for (const LabelPart& part : LabelParts(sizes, batch_axis)) {
    if (left.data() != label.data() && !absl::ConsumePrefix(&left, "_")) return std::nullopt;
    if (!absl::ConsumePrefix(&left, part.prefix)) return std::nullopt;
    const size_t digits = std::min(left.find_first_not_of("0123456789"), left.size());
    int64_t& size = sizes[part.axis];
    if (!absl::SimpleAtoi(left.substr(0, digits), &size)) return std::nullopt;
    left.remove_prefix(digits);
    if (Fit(part.axis, size) != size) return std::nullopt;
  }
  // One text for each bucket: no leading zeros.
  if (!left.empty() || !WithinLimit(sizes) || BucketLabel(sizes, batch_axis) != label) {
    return std::nullopt;
  }
  return sizes;
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
  return absl::StrJoin(LabelParts(bucketed, batch_axis), "_",
                       [&](std::string* out, const LabelPart& part) {
                         absl::StrAppend(out, part.prefix, bucketed.at(part.axis));
                       });
}

std::string RecipeLabel(const AxisSizes& bucketed, size_t num_axes, absl::string_view batch_axis) {
  const size_t padded = bucketed.size() - bucketed.count(std::string(batch_axis));
  const bool has_label = padded > 0 || bucketed.size() == num_axes;
  return has_label ? BucketLabel(bucketed, batch_axis) : "exact";
}

}  // namespace reprise
