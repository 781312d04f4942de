// BucketPolicy: which sizes exist, and which of them a request gets.
//
// Numbers only. An axis has buckets; a binding of buckets is allowed while the product of its sizes
// stays within `max_batch_tokens`, or when its batch is the smallest batch bucket (so that every
// length has at least one allowed binding).
//
//   BucketPolicy policy = BucketPolicy::Default("batch", {"sequence"});
//   RETURN_IF_ERROR(policy.Validate());
//   policy.FitBinding({{"batch", 3}, {"sequence", 100}}, {"batch", "sequence"})  // b4_s128
//
// Threads: const methods from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bucket/size_measure.h"

namespace reprise {

using AxisSizes = std::map<std::string, int64_t>;  // axis -> size

struct AxisBuckets {
  std::string axis;
  std::vector<int64_t> sizes;  // ascending
  // A size beyond the last one opens the next buckets, each at most a quarter larger than the one
  // before it and a multiple of `step`, up to `opens_to` (itself one); 0: none is opened.
  int64_t opens_to = 0;
  int64_t step = 1;

  // Returns the largest bucket, those that may open included.
  int64_t Largest() const { return std::max(sizes.back(), opens_to); }
  // Returns the bucket that follows `size`, one of the last of `sizes` or of those that open.
  int64_t After(int64_t size) const;
  // Returns the smallest bucket that holds `size`; nullopt when none does.
  std::optional<int64_t> Fit(int64_t size) const;
  // Returns the first `most` of the buckets that open.
  std::vector<int64_t> NextOpened(size_t most) const;
  // Returns "640, 800, 992 and so on up to 4096"; empty where none opens.
  std::string OpeningText() const;
};

struct BucketPolicy {
  // The fate of a size above the largest bucket.
  enum class Overflow { kExact, kReject };

  std::vector<AxisBuckets> axes;
  std::string batch_axis;           // empty: none
  int64_t max_batch_tokens = 4096;  // limit on the elements of a binding
  // Limit on the elements of one row of a binding with a bucket that opened by itself: the memory
  // that a replay may take without being asked for by any list of buckets.
  int64_t max_opened_elements = 0;
  // How many elements a binding is, over the axes `measured` (labels); without any the axes of a
  // binding multiply.
  SizeMeasure measure;
  std::vector<std::string> measured;
  Overflow overflow = Overflow::kExact;

  // The default sizes of an axis that counts rows are {1, 2, 4, ...} up to `most`, at least 1; of
  // an axis that counts positions, {16, 32, 64, 128, 256, 512}.
  static constexpr int64_t kDefaultMostRows = 32;
  static std::vector<int64_t> DefaultRows(int64_t most = kDefaultMostRows);
  static std::vector<int64_t> DefaultPositions();

  // Returns the policy of `batch_axis` (may be empty) with rows, every other axis with positions.
  static BucketPolicy Default(absl::string_view batch_axis,
                              const std::vector<std::string>& sequence_axes);

  // Returns INVALID_ARGUMENT naming axis and value: sizes empty, not positive, not ascending; an
  // axis twice; a batch axis without buckets; a limit below 1.
  absl::Status Validate() const;

  // Drops the largest buckets of `axis` that `accepts` refuses (a model may know no position beyond
  // some length) and returns them, ascending. An axis that loses all of them has no buckets.
  std::vector<int64_t> DropRefused(absl::string_view axis,
                                   const std::function<bool(int64_t)>& accepts);

  // Returns the smallest bucket of `axis` that holds `size`; nullopt when none does or it has no
  // buckets.
  std::optional<int64_t> Fit(absl::string_view axis, int64_t size) const;
  // Returns the largest bucket of `axis`, those that may open included.
  std::optional<int64_t> Largest(absl::string_view axis) const;
  // Returns whether `size` of `axis` is a bucket that opened by itself.
  bool IsOpened(absl::string_view axis, int64_t size) const;

  // Returns the elements of a binding. Axes that it does not have count as 1.
  int64_t Elements(const AxisSizes& sizes) const;

  // Returns true when the elements of `sizes` are within the limit or the batch is the smallest
  // bucket (or there is no batch among `sizes`), and not OpensTooMuch.
  bool WithinLimit(const AxisSizes& sizes) const;

  // Returns true when a bucket in `sizes` opened by itself, and a row has more than
  // max_opened_elements.
  bool OpensTooMuch(const AxisSizes& sizes) const;

  // Returns the sizes to run a request at: for each axis in `certified` that has buckets the
  // smallest bucket that holds it, the exact size for the others. When a size is above its largest
  // bucket, or the binding above the limit, nothing is bucketed: kExact returns `sizes` as they are
  // (caller: an exact recipe; see IsBucket), kReject is INVALID_ARGUMENT naming axis, size and
  // largest bucket. The limit binds only where the batch axis is in `certified`: split by rows with
  // LargestBatch first. INVALID_ARGUMENT naming the axis for a size below 1 on a certified axis.
  absl::StatusOr<AxisSizes> FitBinding(const AxisSizes& sizes,
                                       const std::set<std::string>& certified) const;

  // Returns true when every axis of `sizes` that is in `certified` and has buckets is at one,
  // within the limit, and there is at least one such axis.
  bool IsBucket(const AxisSizes& sizes, const std::set<std::string>& certified) const;

  // How many buckets are listed one by one for metrics and reports. Each axis multiplies their
  // number: where there are more, a bucket is known by its label (FindBucket) and made when a
  // request comes.
  static constexpr size_t kMostListed = 256;

  // Returns every allowed binding of all axes in ascending order of axis and size, none that opens;
  // empty without axes, nullopt where there are more than `most`. Takes time and memory in
  // proportion to the result.
  std::optional<std::vector<AxisSizes>> AllBuckets(size_t most = kMostListed) const;

  // Returns an upper bound on the number of buckets: the product over the axes, before the limit
  // drops any.
  double MostBuckets() const;

  // Returns the bucket whose BucketLabel is `label`; nullopt when there is none.
  std::optional<AxisSizes> FindBucket(absl::string_view label) const;

  // Returns the largest batch bucket that is allowed with these sizes of the other axes (`others`
  // may hold a batch, it is ignored): the most rows of one replay. 1 without a batch axis.
  int64_t LargestBatch(const AxisSizes& others) const;
};

// Returns the text of the `bucket` label for the bucketed axes of a binding: `b8_s128`; an axis
// alone `b8`, `s128`; with several sequence-like axes their names, `b8_past_64_sequence_16`.
// "exact" when `bucketed` is empty.
std::string BucketLabel(const AxisSizes& bucketed, absl::string_view batch_axis);

// Returns the label of a recipe of a model with `num_axes` axes of which the ones in `bucketed`
// have a bucket: the label of these axes, for all sizes of the others. "exact" where no position is
// padded: rows of a batch that no request fills are skipped, so that a batch alone, among other
// axes, is no bucket.
std::string RecipeLabel(const AxisSizes& bucketed, size_t num_axes, absl::string_view batch_axis);

}  // namespace reprise
