// Future: the answer of a request that was submitted, when it is there.
//
//   Future answer = launcher.Submit(model, request);
//   ...                                   // the request's bytes stay where they are meanwhile
//   Response response = answer.Get();     // waits
//
// Ownership: copies share one answer, which Get hands out once. A future that is let go of leaves
//            its request running.
// Threads:   all methods from any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/engine/types/request.h"

namespace reprise {

class Future {
 public:
  // Returns whether the answer is there.
  bool ready() const {
    MutexLock lock(state_->mutex);
    return state_->there;
  }
  // Waits until it is there, at most for `time`; returns whether it is.
  bool WaitFor(std::chrono::nanoseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    MutexLock lock(state_->mutex);
    while (!state_->there) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return false;
      state_->arrived.WaitFor(state_->mutex, left);
    }
    return true;
  }
  void Wait() const {
    MutexLock lock(state_->mutex);
    while (!state_->there) state_->arrived.Wait(state_->mutex);
  }
  // Waits, and hands the answer out: the second time there is none, FAILED_PRECONDITION.
  Response Get() {
    MutexLock lock(state_->mutex);
    while (!state_->there) state_->arrived.Wait(state_->mutex);
    if (!state_->response.has_value()) {
      return {.status = absl::FailedPreconditionError("the answer was handed out before")};
    }
    Response response = *std::move(state_->response);
    state_->response.reset();
    return response;
  }
  // Ends the request with CANCELLED: at once if it waits. One that runs stops between launches
  // where no other request shares its replay, and is answered then: its bytes are read until it is.
  void Cancel() const {
    std::function<void()> cancel;
    {
      MutexLock lock(state_->mutex);
      cancel = state_->cancel;
    }
    if (cancel) cancel();
  }

 private:
  friend class Launcher;
  struct State {
    Mutex mutex;
    CondVar arrived;
    bool there = false;                // GUARDED_BY(mutex), as all below
    std::optional<Response> response;  // empty once it was handed out
    std::function<void()> cancel;      // empty where there is nothing to cancel
  };
  Future() : state_(std::make_shared<State>()) {}
  static void Set(State& state, Response response) {
    MutexLock lock(state.mutex);
    state.response = std::move(response);
    state.there = true;
    state.cancel = nullptr;
    state.arrived.NotifyAll();
  }

  std::shared_ptr<State> state_;
};

}  // namespace reprise
