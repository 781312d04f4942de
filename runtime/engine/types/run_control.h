// RunControl: whether a run goes on, and its limits: time, and memory that data ask for.
//
// The client of a run may disconnect, and a run whose work depends on data may have no end. Between
// launches it asks `stopped`, one relaxed load; before work that takes some 10 us or more, and
// between the nodes of an eager run, it looks at the clock as well. Bytes that a request makes
// beyond the arena of its recipe are counted while they live, and asked for before they are
// allocated.
//
// Ownership: borrows clock and flag. Results of Keep may outlive the object.
// Threads:   stopped and IsOverdue from any; the rest from one.
// Errors:    RESOURCE_EXHAUSTED names the node, its use and the limit; CANCELLED.
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
    int64_t max_bytes = 0;  // bytes that live at once; 0: no limit
    // The budget that all runs together take their bytes from; null: none. Outlives the results of
    // Keep.
    MemoryBudget* all = nullptr;
  };
  // `stop`: set when no client waits for the run any more; null: one always does.
  RunControl(const Clock& clock, const Limits& limits, const StopFlag* stop = nullptr)
      : clock_(clock), limits_(limits), stop_(stop == nullptr ? none_ : *stop) {}
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  // Starts the time that counts; `taken_ns` of it has been used before.
  void Begin(int64_t taken_ns = 0) { begin_ns_ = clock_.NowNs() - taken_ns; }

  bool stopped() const { return stop_.stopped(); }
  // Looks at the clock.
  bool IsOverdue() const { return limits_.max_ns > 0 && taken_ns() > limits_.max_ns; }
  int64_t taken_ns() const { return clock_.NowNs() - begin_ns_; }

  // Returns, before `label()`, a node, an error where the run is to end.
  template <typename Label>
  absl::Status Check(const Label& label) const {
    if (!stopped() && !IsOverdue()) return absl::OkStatus();
    return Ended(label());
  }
  // Returns why a run has ended before, or within, `label`.
  absl::Status Ended(absl::string_view label) const;

  // Returns the bytes that may be made now, at most `most`.
  int64_t BytesLeft(int64_t most) const;
  // Returns the bytes that a node may hold for itself while it runs, as the limit of a WorkWatch.
  int64_t BytesForOneNode() const;
  // Returns the error of `bytes` that are not left: INVALID_ARGUMENT where the run could never have
  // them, else RESOURCE_EXHAUSTED.
  absl::Status RefuseBytes(int64_t bytes, absl::string_view why) const;
  // Returns RefuseBytes where `what`, which takes `bytes`, exceeds the rest.
  absl::Status Admit(int64_t bytes, absl::string_view what) const;
  // Makes `made` count until its last copy is gone. RESOURCE_EXHAUSTED where other runs have
  // meanwhile taken the rest that `what` needs.
  absl::StatusOr<Tensor> Keep(Tensor made, absl::string_view what);
  // Returns the setting that bounds BytesLeft.
  const char* LimitName() const;
  // Returns the most that has been kept at once.
  int64_t most_bytes() const { return most_bytes_; }

  // Notes that the work of one node asks for `bytes` besides its operands, which is too much: it
  // ends for that.
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
