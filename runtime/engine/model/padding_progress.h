// PaddingProgress: how far padding is proved along each axis of a model that already serves.
//
// Loading proves small sizes; the rest may follow later (Engine::ConfirmPadding). A request that
// needs more than is proved waits for the end of the proof, as it would wait for a capture.
//
// Threads: Defer before the model is shared, all others from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/certify/certificate.h"

namespace reprise {

class PaddingProgress {
 public:
  static constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

  // Makes everything that a certificate says hold at any size.
  explicit PaddingProgress(size_t axes);
  // Notes that axis `axis` is proved to `size`; Finish will say more.
  void Defer(size_t axis, int64_t size);
  // Notes that the deferred proof waits until a request needs it.
  void AwaitRequest() { awaits_request_ = true; }

  // Returns the size beyond which nothing is padded along `axis`; 0 once its proof has failed.
  int64_t proved_to(size_t axis) const { return proved_to_[axis].load(std::memory_order_acquire); }
  // Returns whether Finish is still to come.
  bool pending() const { return pending_.load(std::memory_order_acquire); }
  // Return whether the proof waits until a request asks for it. TakeUp: true for one caller, who
  // then owes Finish.
  bool awaits_request() const { return awaits_request_.load(std::memory_order_acquire); }
  bool TakeUp() { return awaits_request_.exchange(false, std::memory_order_acq_rel); }
  // Calls `done` once, on the thread that finishes the proof. Returns false, and `done` is not
  // called, when it is finished already.
  bool WhenDone(std::function<void()> done);

  // Ends the proof: gives, by axis, the certificates of the deferred ones as they are known now.
  void Finish(std::map<size_t, AxisCertificate> certificates);
  // Ends the proof where not even that could be found out: an axis that is not proved to any size
  // by then is not padded. Needs no memory.
  void GiveUp();
  // Takes the certificate of axis `axis` away, which was `certificate`: a request showed that it
  // does not hold, as `reason` says. It stays so, whatever Finish says.
  void Quarantine(size_t axis, AxisCertificate certificate, const std::string& reason);
  // Returns the certificate that Finish, or Quarantine, gave `axis`; null before, and for an axis
  // that was not deferred.
  std::shared_ptr<const AxisCertificate> Finished(size_t axis) const;

 private:
  // Calls the waiters, and empties their list.
  void End();

  const size_t axes_;
  const std::unique_ptr<std::atomic<int64_t>[]> proved_to_;  // one per axis
  std::atomic<bool> pending_{false};
  std::atomic<bool> awaits_request_{false};
  // Guarded.
  mutable Mutex mutex_;
  std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  std::map<size_t, std::shared_ptr<const AxisCertificate>> finished_ GUARDED_BY(mutex_);
  std::set<size_t> quarantined_ GUARDED_BY(mutex_);
};

}  // namespace reprise
