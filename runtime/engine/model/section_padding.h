// SectionPadding: up to which sizes one section after a cut is padded, learnt from the sizes that
// arrive.
//
// Nothing declares which of its sizes depend on the data: sizes that differ between two runs do,
// and sizes that always agree are one axis. Along an axis that the ops prove safe to pad
// (certify/axis_flow.h; nothing here is measured) a size is rounded up to one of few buckets, so
// that counts that come once do not each capture a recipe; along every other one it stays as it is.
// Where the size of an axis that stays decides something (verify/size_slices.h), the others are
// proved once more for each of its sizes. Padding repeats the last position: rows that are put
// somewhere by a list of places (ScatterElements) are put there once more. A proof may want inputs
// to be places of the request; each request is looked at for that.
//
// Counts of several axes would have as many recipes as their buckets have combinations: sizes that
// were given before serve others as well, and grow together, up to twice what a request needs.
//
// Ownership: value.
// Threads:   all methods from any. Where sizes have told more dims apart, `Fit` proves under its
//            lock, which takes some milliseconds for each specialisation; others wait meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/axis/axis_rule.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/output_shapes.h"

namespace reprise {

// Returns the smallest bucket of at least `size`: powers of two from 16 on, and half way between
// them.
int64_t SectionBucket(int64_t size);

class SectionPadding {
 public:
  // `section` outlives the object. Every dim of its inputs is a symbol of its own.
  explicit SectionPadding(const ModelVariant& section) : section_(section) {}

  // Sizes to run at instead of those that arrived.
  struct Fitted {
    Binding binding;
    std::set<std::string> padded;  // symbols
    std::map<std::string, int64_t>
        largest;  // each symbol with the size up to which padding is proved
    // By output, by dim: the size that an answer has; where absent, the recipe's.
    std::vector<std::vector<std::optional<int64_t>>> true_sizes;
  };
  // Returns an input of the section.
  using FindValue = absl::FunctionRef<const Tensor&(const std::string& name)>;
  // Returns the sizes to run at. Absent: exactly the sizes that arrived.
  std::optional<Fitted> Fit(const Binding& arrived, FindValue value);

  // Returns the facts about each axis, for people: "dim 1 of 'where': padded, which the ops prove
  // safe". Empty until sizes have differed.
  std::vector<std::string> Words() const;

 private:
  // Dims that had equal sizes whenever any of them was looked at.
  struct Axis {
    std::vector<std::string> symbols;
    bool padded = false;
    bool decides = false;                // its size may decide something
    bool repeats = false;                // the proof wants padding that repeats the last position
    int64_t smallest = 1;                // size that the section takes
    int64_t proved_to = kFirstLookedAt;  // size up to which it holds
    bool grows = true;                   // it has not been refused for larger ones
    std::set<std::string> places;        // inputs that must be places of the request
    std::string why_not;
  };
  // Decisions that only large sizes trigger are looked for up to a size that grows with those that
  // arrive, from the first to the largest.
  static constexpr int64_t kFirstLookedAt = 512;
  static constexpr int64_t kLargestLookedAt = 16384;

  // Sorts the symbols by the sizes that they had, and proves as much as it can.
  void Learn(const Binding& arrived) REQUIRES(mutex_);
  void Prove() REQUIRES(mutex_);
  // Proves once more for sizes of axis `position` up to `size`, as far as that holds.
  void ProveUpTo(size_t position, int64_t size) REQUIRES(mutex_);
  // Returns the finding about axis `position` among `axes`, which are the ones at `positions` of
  // axes_, in the section as Merged() with sizes `fixed`.
  AxisFinding FindingOf(const Graph& merged, const std::vector<ModelAxis>& axes, size_t position,
                        bool repeats, int64_t largest,
                        const std::map<std::string, int64_t>& fixed) const;
  // Returns whether the proofs hold where `sizes`, by axis, are fixed, but the ones of kFree are
  // not.
  bool HoldsAt(const std::vector<int64_t>& sizes) REQUIRES(mutex_);
  bool ProveAt(const std::vector<int64_t>& sizes) const REQUIRES(mutex_);
  bool IsNew(const Binding& arrived) const REQUIRES(mutex_);
  // Returns the sizes, by axis, that `sizes` are rounded up to; those that are not `padded` stay.
  std::vector<int64_t> RoundedUp(const std::vector<int64_t>& sizes, const std::vector<bool>& padded)
      REQUIRES(mutex_);
  Graph Merged() const REQUIRES(mutex_);

  // Constant after construction.
  const ModelVariant& section_;
  // Guarded.
  mutable Mutex mutex_;
  // Sizes that told symbols apart, the first that arrived among them.
  std::vector<std::map<std::string, int64_t>> witnesses_ GUARDED_BY(mutex_);
  std::vector<Axis> axes_ GUARDED_BY(mutex_);
  std::vector<OutputShape> outputs_ GUARDED_BY(mutex_);  // dims by position in axes_
  // Sizes that RoundedUp gave where several axes are padded.
  std::vector<std::vector<int64_t>> given_ GUARDED_BY(mutex_);
  // By the sizes that are fixed: whether the proofs hold there.
  std::map<std::vector<int64_t>, bool> holds_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
