// WaitingCall: a request that waits to begin again, for its model or for a thread of texts, as the
// client's side holds it.
//
// Ownership: the request's `done` owns it, so that it lives until the answer.
// Threads:   all methods from any thread.
#pragma once

#include <memory>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/base/stop_flag.h"
#include "server/requests/call.h"

namespace reprise {

class WaitingCall final : public Call {
 public:
  // Cancels: the request asks `left()` when it begins again, and ends with CANCELLED.
  void Cancel() override {
    left_.Stop();
    std::shared_ptr<Call> begun;
    {
      MutexLock lock(mutex_);
      begun = begun_.lock();
    }
    if (begun != nullptr) begun->Cancel();
  }

  // Notes that the request has begun as `call`.
  void SetBegun(const std::shared_ptr<Call>& call) {
    {
      MutexLock lock(mutex_);
      begun_ = call;
    }
    // Its client may have left before there was anything to cancel.
    if (left_.stopped()) call->Cancel();
  }

  const StopFlag& left() const { return left_; }

 private:
  StopFlag left_;
  Mutex mutex_;
  std::weak_ptr<Call> begun_ GUARDED_BY(mutex_);
};

}  // namespace reprise
