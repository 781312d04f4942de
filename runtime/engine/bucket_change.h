// BucketChange: a look at one model's traffic, and the changes that it leads to.
//
// Where other buckets pay, the recipes that they want are captured first, one after another in the
// background; then the set is put in force at once. Batches that are planned or run finish on the
// set that they began with. Where a recipe cannot be made, nothing changes.
//
// Ownership: shared; the capture under way keeps it alive. Threads: runs on capture threads, never
// on one that serves.
#pragma once

#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/traffic/bucket_learner.h"

namespace reprise {

class BucketChange : public std::enable_shared_from_this<BucketChange> {
 public:
  // Looks, and begins the changes that pay. The caller has begun the look
  // (BucketLearner::BeginLook); it ends when the change is in force or given up. The engine
  // outlives it.
  static void Look(Engine& engine, std::shared_ptr<const Model> model);

 private:
  BucketChange(Engine& engine, std::shared_ptr<const Model> model, BucketLearner::Found found);

  // Returns the sizes that must be ready: for each wanted size the recipes for the numbers of rows
  // that are used, and the largest, which serves every other.
  std::deque<AxisSizes> Wanted() const;
  void Next();
  void GiveUp(const AxisSizes& sizes, const absl::Status& why);
  void Finish();

  // Constant after construction.
  Engine& engine_;
  const std::shared_ptr<const Model> model_;
  const BucketLearner::Found found_;
  const std::shared_ptr<const BucketPolicy> policy_;
  // Used by one thread at a time.
  std::deque<AxisSizes> wanted_;
  int64_t captured_ = 0;
};

}  // namespace reprise
