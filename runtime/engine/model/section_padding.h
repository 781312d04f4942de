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
// Where windows slide along an axis (convolutions, pools) the section is tried in its live form
// (passes/live), whose nodes know where the request ends. Padding holds zeros there.
//
// Ownership: value.
// Threads:   all methods from any. Where sizes have told more dims apart, `Fit` proves under its
//            lock, which takes some milliseconds for each specialisation; others wait meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/model/section_sizes.h"
#include "runtime/graph/extent.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/axis/axis_rule.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/output_shapes.h"

namespace reprise {

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
    // The section in its live form, which takes its place; null: as it is.
    std::shared_ptr<const ModelVariant> live;
    // By name of an input that the live form has besides: the size that arrived.
    std::map<std::string, int64_t> live_sizes;
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
    bool live = false;  // all of the above is about the live form, whose sizes are multiples of
                        // `step`, and which has these extents from `whole_from` on
    int64_t step = 1;
    std::vector<Extent> extents;
    int64_t whole_from = 1;
  };
  // Decisions that only large sizes trigger are looked for up to a size that grows with those that
  // arrive, from the first to the largest.
  static constexpr int64_t kFirstLookedAt = 512;
  static constexpr int64_t kFirstLookedAtLive = 2048;
  static constexpr int64_t kLargestLookedAt = 16384;

  // Sorts the symbols by the sizes that they had, and proves as much as it can.
  void Learn(const Binding& arrived) REQUIRES(mutex_);
  void Prove() REQUIRES(mutex_);
  void ProveAsIs(const Graph& merged) REQUIRES(mutex_);
  // Proves the live form where that gains an axis, and returns whether it does: for sizes that are
  // multiples of `step`, or of a smaller one, as all were that arrived.
  bool ProveLive(const Graph& merged, int64_t step) REQUIRES(mutex_);
  // Proves once more for sizes of axis `position` up to `size`, as far as that holds.
  void ProveUpTo(size_t position, int64_t size) REQUIRES(mutex_);
  // Returns the finding about `axis`, which is at `position` among `axes`, in `graph` with sizes
  // `fixed`.
  AxisFinding FindingOf(const Graph& graph, const std::vector<ModelAxis>& axes, size_t position,
                        const Axis& axis, const std::map<std::string, int64_t>& fixed) const;
  static ModelAxis ModelAxisOf(const Axis& axis);
  static FitRange FitRangeOf(const Axis& axis);
  // Returns the largest of a few steps up to `most` that divides all sizes of `symbol`.
  int64_t StepOf(const std::string& symbol, int64_t most) const REQUIRES(mutex_);
  // Returns the size of each axis at which outputs are compared.
  std::vector<int64_t> FitSizes() const REQUIRES(mutex_);
  // Returns whether the proofs hold where `sizes`, by axis, are fixed, but the ones of kFree are
  // not.
  bool HoldsAt(const std::vector<int64_t>& sizes) REQUIRES(mutex_);
  bool ProveAt(const std::vector<int64_t>& sizes) const REQUIRES(mutex_);
  bool IsNew(const Binding& arrived) const REQUIRES(mutex_);
  Graph Merged() const REQUIRES(mutex_);

  // Constant after construction.
  const ModelVariant& section_;
  // Guarded.
  mutable Mutex mutex_;
  // Sizes that told symbols apart, the first that arrived among them.
  std::vector<std::map<std::string, int64_t>> witnesses_ GUARDED_BY(mutex_);
  std::vector<Axis> axes_ GUARDED_BY(mutex_);
  std::vector<OutputShape> outputs_ GUARDED_BY(mutex_);  // dims by position in axes_
  SectionSizes given_ GUARDED_BY(mutex_);
  std::shared_ptr<const ModelVariant> live_ GUARDED_BY(mutex_);  // null: the section as it is
  // By the sizes that are fixed: whether the proofs hold there.
  std::map<std::vector<int64_t>, bool> holds_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
