// PackingCheck: a packed model against itself unpadded, before it serves anybody.
//
// Requests of several lengths, with masks of several kinds, run together in one packed replay and
// each alone at its own shape. The pass that packs knows rules; this knows whether they were right.
//
// Ownership: borrows what the lane points to. Threads: one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/certify/draw.h"
#include "runtime/verify/proof_runners.h"

namespace reprise {

class PackingCheck {
 public:
  // Rows of this many tokens are compared with masks that have holes and begin with zeros.
  static constexpr int64_t kWithHoles = 5;

  // The equipment of one thread.
  struct Lane {
    const Drawer* drawer = nullptr;
    std::string sequence;  // symbol of the axis
    std::string batch;     // symbol; empty for a model without
    absl::Span<const std::string> output_names;
    ProofRunner* runner = nullptr;
    double tolerance = 1e-5;  // relative to the largest |element| of the unpadded output
  };

  explicit PackingCheck(const PackedForm& form) : form_(form) {}

  // The trials besides the first mix.
  struct Rounds {
    // Counts more mixes, for faults that rules alone do not show: ranges of whole requests, beside
    // loud ones, and with tokens behind the last segment that belong to nobody.
    int sweeps = 0;
    // A mix of masks that no padded request may have: rows in which nothing counts, or nothing at
    // the beginning, or little.
    bool any_mask = false;
  };

  // Once. FAILED_PRECONDITION naming output and length where an answer differs; what the runs
  // return.
  absl::Status Run(const Lane& lane, const Rounds& rounds);
  // Answers that were compared.
  int answers() const { return answers_; }

 private:
  const PackedForm form_;
  int answers_ = 0;
};

}  // namespace reprise
