// FindLeak: whether padding along an axis of a model can change an answer, read off its ops.
//
// Nothing is run, and nothing is asked of requests: what a client sends may hold anything, and so
// may its padding. Inputs of a live form (passes/live) say which positions are a request's; these
// hold zeros in the padding, and the floats beside them their fill values.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/ops/axis/axis_rule.h"
#include "runtime/verify/proof_subject.h"
#include "runtime/verify/size_choices.h"

namespace reprise {

// Returns the certificate of the axis at `position` that `finding` gives.
AxisCertificate CertificateOf(const ProofSubject& subject, size_t position,
                              const AxisFinding& finding);

// Returns what the ops say of the axis at `position` of `readings`, whose axes are the subject's or
// some of them, for sizes up to `largest` (0: small ones alone).
AxisFinding FindLeak(const ProofSubject& subject, const SizeReadings& readings, size_t position,
                     int64_t largest);

}  // namespace reprise
