// FreezeSwitch: freezes and thaws a model while it serves.
//
// Copies share one state, so that all models which are loaded from the files of one version follow
// it. Threads: all methods from any.
#pragma once

#include <atomic>
#include <memory>

namespace reprise {

class FreezeSwitch {
 public:
  // Returns whether nothing may be captured for requests: `configured`, until Set is called.
  bool IsOn(bool configured) const {
    const State state = state_->load(std::memory_order_relaxed);
    return state == State::kAsConfigured ? configured : state == State::kFrozen;
  }
  void Set(bool frozen) const {
    state_->store(frozen ? State::kFrozen : State::kThawed, std::memory_order_relaxed);
  }

 private:
  enum class State { kAsConfigured, kFrozen, kThawed };
  std::shared_ptr<std::atomic<State>> state_ =
      std::make_shared<std::atomic<State>>(State::kAsConfigured);
};

}  // namespace reprise
