// PaddingProof: measures along which axes of a model requests may be padded, and how far.
//
// `Measure` fills in the certificates while a model is loaded. Where the subject says so it stops
// at small sizes, which takes a few short replays, and `Confirm` does the long ones later, on
// whatever thread the caller has to spare.
//
// Ownership: borrows subject and runners. Threads: one caller; Measure before the model is shared,
// Confirm once and Extend at any time while it serves.
// Errors: no memory for a runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/certify/probe.h"
#include "runtime/verify/axis_measurement.h"
#include "runtime/verify/padding_prober.h"
#include "runtime/verify/prober_lanes.h"
#include "runtime/verify/proof_runners.h"
#include "runtime/verify/proof_subject.h"
#include "runtime/verify/request_proof.h"

namespace reprise {

// The part of the proof that Measure leaves for Confirm.
struct PendingProof {
  struct Axis {
    size_t position = 0;  // index into the subject's axes
    AxisMeasurement::Rest rest;
  };
  std::vector<InputRange> ranges;
  std::vector<Axis> axes;  // empty: nothing is left
  bool whole = false;      // nothing was measured: Confirm is not for this
};

class PaddingProof {
 public:
  PaddingProof(const ProofSubject& subject, ProofRunners& runners)
      : subject_(subject), runners_(runners), lanes_(subject, subject.graph, runners) {}

  struct Options {
    std::vector<std::vector<int64_t>> buckets;  // one list per axis
    bool try_packed = false;                    // the packed form is wanted, where there is one
    // Returns the largest size of an axis at which buckets may open beyond its own; 0: none. Empty:
    // for no axis.
    std::function<int64_t(size_t position)> farthest;
    // Returns whether the shapes of outputs are as they were fitted up to this size.
    std::function<bool(size_t position, int64_t size)> shapes_hold;
  };
  struct Findings {
    PendingProof pending;
    // The packed form answers as the model does, or why it is not used.
    absl::Status packed = absl::UnknownError("not tried");
    // Set where some axis may not be padded, and requests may yet be packed as a whole.
    std::optional<absl::StatusOr<RequestProof::Found>> by_request;
    std::vector<InputRange> ranges;
  };
  // Fills in the certificates of those of `axes`, which are the subject's, that have no refusal
  // yet, on as many threads as there are cores. `fit_shapes` fits the shapes of the outputs, and
  // may refuse axes; it is called once, on any thread.
  absl::StatusOr<Findings> Measure(std::vector<ModelAxis>& axes, const Options& options,
                                   const std::function<absl::Status()>& fit_shapes);

  // Leaves all of it, and runs nothing: where the batch alone has no refusal once the shapes are
  // fitted it counts as certified, and is not padded before Measure was called of a copy of the
  // axes. Nothing where other axes have none either: Measure has to say which of them requests are
  // padded along.
  absl::StatusOr<std::optional<PendingProof>> Defer(
      std::vector<ModelAxis>& axes, const Options& options,
      const std::function<absl::Status()>& fit_shapes);

  // Whether the packed form takes masks with which nothing may be padded.
  struct AnyMask {
    absl::Status holds;  // or where an answer differs
    int answers = 0;     // that were compared
  };
  absl::StatusOr<AnyMask> MeasureAnyMask(absl::Span<const InputRange> ranges);

  // Does what Measure has left, on the caller's thread alone: the certificates of the axes that
  // were left, by position.
  absl::StatusOr<std::map<size_t, AxisCertificate>> Confirm(const PendingProof& pending);

  // Looks at one more size of a certified axis, larger than what was measured, on the caller's
  // thread alone. FAILED_PRECONDITION saying why where padding to it could change an answer.
  absl::Status Extend(size_t position, int64_t size);

 private:
  // Confirms the certificate of the axis at `position`; where the ops do not prove it, with what
  // the answers show too coarsely.
  absl::StatusOr<AxisCertificate> ConfirmClosely(size_t position,
                                                 const AxisCertificate& certificate, bool proved,
                                                 absl::Span<const InputRange> ranges,
                                                 const ProbeOptions& options,
                                                 const PaddingProber& prober) const;
  // Fills in how far those of `axes` that the ops prove at their buckets may open larger ones.
  // Reads the model, and runs nothing.
  absl::Status OpenFurther(std::vector<ModelAxis>& axes, const Options& options,
                           absl::Span<const InputRange> ranges);
  absl::StatusOr<AxisCertificate> ConfirmAxis(const PendingProof::Axis& left,
                                              absl::Span<const InputRange> ranges,
                                              const PaddingProber& prober) const;

  const ProofSubject& subject_;
  ProofRunners& runners_;
  ProberLanes lanes_;
};

}  // namespace reprise
