// StepGate: which models compute a step now, where more have something to do than the cores compute
// side by side.
//
// Time is shared by keys, by their weights, and a key's time by its models: a place is for the
// model with the key that has had the least time, among equal ones for the model that has. A model
// keeps its place from step to step until one that waits has had less.
//
// Ownership: members are registered while they live, and the gate outlives them.
// Threads: all methods from any; methods on one member from one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "runtime/base/weighted_share.h"

namespace reprise {

class StepGate {
 public:
  // A model that steps.
  class Member {
   public:
    explicit Member(StepGate& gate);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    friend class StepGate;
    StepGate& gate_;
    // Guarded by the gate's mutex.
    std::vector<const WeightedShare*> keys_;
    WeightedShare model_;
    bool waits_ = false, holds_ = false;
    CondVar given_;
  };

  // `places`: the most steps at a time.
  explicit StepGate(int places) : free_(places) {}
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;

  // Returns the time of a key in the steps of all models, in ns; stays where it is.
  WeightedShare& Of(const std::string& key, double weight);
  // Notes that a model has something to do for `key`, or no longer has.
  void Enter(WeightedShare& key);
  void Leave(WeightedShare& key);

  // Waits for a place, unless `member` has one and none that waits has had less. `keys`: the
  // keys that it has something to do for.
  void Begin(Member& member, absl::Span<WeightedShare* const> keys);
  // Adds the times in ns that keys have had in a step of `member`.
  void Charge(Member& member, absl::Span<const std::pair<WeightedShare*, int64_t>> times);
  // It has nothing to do: its place is for others.
  void End(Member& member);

 private:
  // Returns the time of the key of `member` that has had the least, and the time of its model.
  static std::pair<double, double> Had(const Member& member);
  // Returns the one to get the next place; null: none waits.
  Member* NextLocked() REQUIRES(mutex_);
  static void GiveLocked(Member& member);

  Mutex mutex_;
  int free_ GUARDED_BY(mutex_);
  std::vector<Member*> members_ GUARDED_BY(mutex_);
  std::map<std::string, WeightedShare> keys_ GUARDED_BY(mutex_);
  SharedUse use_of_keys_ GUARDED_BY(mutex_);
  SharedUse use_of_models_ GUARDED_BY(mutex_);
};

}  // namespace reprise
