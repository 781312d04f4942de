// AxisMeasurement: the certificate of one axis, while its model is loaded.
//
// The verdict of the ops is asked for first; what is measured then must agree with it. An axis that
// they prove takes a brief look, if the model's options let the whole one follow behind readiness;
// any other takes all of it here, and refuses padding where it finds a difference.
//
// Ownership: borrows what it is made with. Threads: one; measurements of other axes of the model
// may be under way on others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/certify/probe.h"
#include "runtime/verify/padding_prober.h"
#include "runtime/verify/proof_runners.h"
#include "runtime/verify/watched_form.h"

namespace reprise {

class AxisMeasurement {
 public:
  // The part of the measurement that is to follow behind readiness.
  struct Rest {
    // Nothing is padded further until then. INT64_MAX: any size may be.
    int64_t proved_to = 0;
    bool brief = false;                 // how the first look was
    std::vector<int64_t> padded_sizes;  // still to be measured, ascending
  };

  // `axis`: that at `position` of `subject`, whose certificate Run fills in. `buckets`: of the
  // axis.
  AxisMeasurement(const ProofSubject& subject, ModelAxis& axis, size_t position,
                  const PaddingProber& prober, ProofRunners& runners,
                  absl::Span<const InputRange> ranges, const std::vector<int64_t>& buckets);

  // Errors: as of a run of the model that no certificate can be told from.
  absl::Status Run();

  const std::optional<Rest>& rest() const { return rest_; }

 private:
  // The certificate that most models get: rows are their own, of lengths the masks tell.
  AxisCertificate Guess() const;
  bool MayFollow() const;
  AxisFinding Ask(const AxisCertificate& certificate) const;
  absl::Status Look();
  absl::Status FirstLook();
  absl::Status GuardIds();
  absl::Status Watch();
  void AskOfMasks();
  const PaddingProber& Measuring() const;
  ProbeOptions OptionsOf(const ProbeOptions& options) const;
  absl::Status Sweep();
  // A second look with the sweeps that `options` say.
  absl::Status SweepWith(const ProbeOptions& options);
  void Join();
  void SayInWhichSteps();
  absl::Status SayWhatHelps();
  absl::Status LookFurther();

  const ProofSubject& subject_;
  ModelAxis& axis_;
  const size_t position_;
  const PaddingProber& prober_;
  ProofRunners& runners_;
  const absl::Span<const InputRange> ranges_;
  const int64_t largest_;  // bucket that the model takes
  ProbeOptions options_;
  const AxisCertificate guess_;
  const AxisFinding guessed_;                   // what the ops say of it
  std::vector<int64_t> later_;                  // lengths that the first look leaves out
  std::unique_ptr<const WatchedForm> watched_;  // null: the answers alone are looked at
  AxisFinding finding_;                         // what the ops say of the certificate
  std::optional<Rest> rest_;
};

}  // namespace reprise
