// SectionPadding: up to which sizes one section after a cut is padded, learnt from the sizes that
// arrive.
//
// Nothing declares which of its sizes depend on the data: sizes that differ between two runs do,
// and sizes that always agree are one axis. Along an axis that the ops prove safe to pad
// (certify/axis_flow.h; nothing here is measured) a size is rounded up to one of few buckets, so
// that counts that come once do not each capture a recipe; along every other one it stays as it is.
// Where the size of an axis that stays decides something (verify/size_slices.h), the others are
// proved once more for each of its sizes. Padding holds zeros.
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

#include "runtime/base/mutex.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/passes/specialize/specialize.h"
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
    // By output, by dim: the size that an answer has; where absent, the recipe's.
    std::vector<std::vector<std::optional<int64_t>>> true_sizes;
  };
  // Returns the sizes to run at. Absent: exactly the sizes that arrived.
  std::optional<Fitted> Fit(const Binding& arrived);

  // Returns the facts about each axis, for people: "dim 1 of 'where': padded, which the ops prove
  // safe". Empty until sizes have differed.
  std::vector<std::string> Words() const;

 private:
  // Dims that had equal sizes whenever any of them was looked at.
  struct Axis {
    std::vector<std::string> symbols;
    bool padded = false;
    bool decides = false;  // its size may decide something
    int64_t smallest = 1;  // size that the section takes
    std::string why_not;
  };
  // Sorts the symbols by the sizes that they had, and proves as much as it can.
  void Learn(const Binding& arrived) REQUIRES(mutex_);
  void Prove() REQUIRES(mutex_);
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
  // By the sizes that are fixed: whether the proofs hold there.
  std::map<std::vector<int64_t>, bool> holds_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
