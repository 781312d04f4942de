// WatchedForm: a model with the numbers among its outputs that its answers show too coarsely.
//
// A comparison, a Cast to whole numbers, the place of a maximum or a function that saturates makes
// the very same of numbers that padding has changed, for the few contents that a measurement draws.
// The data that such nodes (kCoarse) read is compared itself, where it lies as answers do: the
// elements of a request in front, along dims that move with the axis that is measured or with
// others, but not with both.
//
// Where the ops prove an axis nothing is hidden, and nothing is watched.
//
// Ownership: borrows what it is made with. Threads: one caller at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/certify/probe.h"
#include "runtime/graph/graph.h"
#include "runtime/verify/padding_prober.h"
#include "runtime/verify/proof_runners.h"
#include "runtime/verify/proof_subject.h"

namespace reprise {

class WatchedForm {
 public:
  // For the axis at `position`, looked at as `options` say. Null where nothing is to be watched.
  // RESOURCE_EXHAUSTED: there is no memory for a runner.
  static absl::StatusOr<std::unique_ptr<WatchedForm>> Make(const ProofSubject& subject,
                                                           const SizeReadings& readings,
                                                           ProofRunners& runners, size_t position,
                                                           const ProbeOptions& options);
  WatchedForm(const WatchedForm&) = delete;
  WatchedForm& operator=(const WatchedForm&) = delete;

  // Measures what is watched together with the answers.
  const PaddingProber& prober() const { return *prober_; }
  // `options` of a measurement of the model, for one of this form.
  ProbeOptions OptionsFrom(ProbeOptions options) const;

 private:
  explicit WatchedForm(const ProofSubject& subject) : graph_(subject.graph) {}

  Graph graph_;
  std::unique_ptr<ProofSubject> subject_;  // the model's, with what is watched as outputs
  size_t answers_ = 0;                     // the first outputs are the model's
  std::unique_ptr<ProofRunner> runner_;
  std::unique_ptr<const PaddingProber> prober_;
};

}  // namespace reprise
