// PackedTrial: the packed form of a model, tried while its axes are still measured.
//
// Ownership: borrows subject and runners. Threads: Run from one; GiveUp from any; result after Run.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/verify/padding_prober.h"

namespace reprise {

class PackedTrial {
 public:
  PackedTrial(const ProofSubject& subject, ProofRunners& runners, std::vector<InputRange> ranges)
      : subject_(subject), runners_(runners), ranges_(std::move(ranges)) {}

  // The model is padded whatever comes out: a trial that has not begun is left out.
  void GiveUp() { given_up_ = true; }
  // The outcome is told by result(); Run itself returns OK always.
  absl::Status Run(const PaddingProber& prober);

  // The packed form answers as the model does, or why not.
  const absl::Status& result() const { return result_; }

 private:
  // Constant after construction.
  const ProofSubject& subject_;
  ProofRunners& runners_;
  const std::vector<InputRange> ranges_;
  // Self-synchronised.
  std::atomic<bool> given_up_{false};
  // Belongs to whoever runs it.
  absl::Status result_ = absl::UnknownError("not tried");
};

}  // namespace reprise
