// RunControl: whether a run goes on, and what it may take: time, and memory that data ask for.
//
// Who waits for a run may go away, and a run whose work hangs on data may have no end. Between
// launches it asks `stopped`, one relaxed load; in front of work that takes some 10 us or more, and
// between the nodes of an eager run, it looks at the clock as well. What a request makes beyond the
// arena of its recipe is counted while it lives, and asked for before it is allocated.
//
// Ownership: borrows clock and flag. What Keep returns may outlive the object.
// Threads:   stopped and IsOverdue from any; the rest from one.
// Errors:    RESOURCE_EXHAUSTED names the node, what it took and the limit; CANCELLED.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/clock.h"
#include "runtime/base/stop_flag.h"
#include "runtime/base/work_watch.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/graph/tensor.h"

namespace reprise {

class RunControl {
 public:
  struct Limits {
    int64_t max_ns = 0;     // time to compute; 0: no limit
    int64_t max_bytes = 0;  // that live at once; 0: no limit
    // That all runs together take what they make from; null: none. Outlives what Keep returns.
    MemoryBudget* all = nullptr;
  };
  // `stop`: set when nobody waits for the run any more; null: somebody does.
  RunControl(const Clock& clock, const Limits& limits, const StopFlag* stop = nullptr)
      : clock_(clock), limits_(limits), stop_(stop == nullptr ? none_ : *stop) {}
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  // From here on time counts; `taken_ns` of it has been used before.
  void Begin(int64_t taken_ns = 0) { begin_ns_ = clock_.NowNs() - taken_ns; }

  bool stopped() const { return stop_.stopped(); }
  // Looks at the clock.
  bool IsOverdue() const { return limits_.max_ns > 0 && taken_ns() > limits_.max_ns; }
  int64_t taken_ns() const { return clock_.NowNs() - begin_ns_; }

  // In front of `label()`, a node: an error where the run is to end.
  template <typename Label>
  absl::Status Check(const Label& label) const {
    if (!stopped() && !IsOverdue()) return absl::OkStatus();
    return Ended(label());
  }
  // Why a run has ended in front of, or within, `label`.
  absl::Status Ended(absl::string_view label) const;

  // The bytes that may be made now, at most `most`.
  int64_t BytesLeft(int64_t most) const;
  // Those that a node may hold for itself while it runs, as the limit of a WorkWatch.
  int64_t BytesForOneNode() const;
  // Returns the error of `bytes` that are not left: INVALID_ARGUMENT where the run could never have
  // them, else RESOURCE_EXHAUSTED.
  absl::Status RefuseBytes(int64_t bytes, absl::string_view why) const;
  // RefuseBytes where `what`, which takes `bytes`, is more than is left.
  absl::Status Admit(int64_t bytes, absl::string_view what) const;
  // `made` counts until its last copy is gone. RESOURCE_EXHAUSTED where other runs have taken
  // meanwhile what was left for `what`.
  absl::StatusOr<Tensor> Keep(Tensor made, absl::string_view what);
  // Returns the setting that bounds BytesLeft.
  const char* LimitName() const;
  // Returns the most that has been kept at once.
  int64_t most_bytes() const { return most_bytes_; }

  // The work of one node asks for `bytes` beside its operands, which is too much: it ends for that.
  void NoteTooMuch(int64_t bytes) const { too_much_bytes_ = bytes; }

 private:
  const Clock& clock_;
  const Limits limits_;
  const StopFlag none_;
  const StopFlag& stop_;
  int64_t begin_ns_ = 0;
  mutable std::atomic<int64_t> too_much_bytes_{0};  // 0: no node has asked for too much
  int64_t most_bytes_ = 0;
  const std::shared_ptr<std::atomic<int64_t>> made_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
};

// RunWatch: watches a node that runs as a whole, by the control of its run.
class RunWatch final : public WorkWatch {
 public:
  explicit RunWatch(const RunControl& control)
      : WorkWatch(control.BytesForOneNode()), control_(control) {}

  bool Ends() const override { return control_.stopped() || control_.IsOverdue(); }

 private:
  void OnTooMuch(int64_t bytes) override { control_.NoteTooMuch(bytes); }

  const RunControl& control_;
};

}  // namespace reprise
