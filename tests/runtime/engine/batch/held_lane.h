// One thread of a CapturePool, kept busy for as long as a test wants its lane to stand still.
#pragma once

#include <future>
#include <memory>

#include "runtime/engine/capture/capture_pool.h"

namespace reprise {

// The pool has one thread for `urgency`, or its other threads go on with the lane's jobs. The
// lane goes on when Release is called or the object goes away; the job owns the event that it waits
// for, so it may wake up later than the test ends.
class HeldLane {
 public:
  HeldLane(CapturePool& pool, CaptureUrgency urgency) {
    auto begun = std::make_shared<std::promise<void>>();
    std::future<void> held = begun->get_future();
    pool.Add(urgency, [begun, until = release_.get_future().share()](Stream*) {
      begun->set_value();
      until.wait();
    });
    held.wait();
  }
  ~HeldLane() { Release(); }
  HeldLane(const HeldLane&) = delete;
  HeldLane& operator=(const HeldLane&) = delete;

  void Release() {
    if (!released_) release_.set_value();
    released_ = true;
  }

 private:
  std::promise<void> release_;
  bool released_ = false;
};

}  // namespace reprise
