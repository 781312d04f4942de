// RequestProof: whether a model may be packed whose axes may not be padded.
//
// Where a node takes the range of a whole tensor, padding and batch-mates change every answer;
// where one takes the last token, padding does. In the packed form the range is that of each
// request (passes/pack/request_scales.h), the last token its own. What is then to be shown is not
// that padding is harmless, but that each request gets its own answer:
//
//   the ops     the model with its ranges taken by request is walked along both axes
//               (certify/axis_flow.h); a node that still lets positions meet refuses, by name
//   the pass    pack_tokens has a rule for every node, or names the one without
//   answers     packed among others against alone and unpadded, in many mixes (packing_check.h)
//
// Ownership: borrows all. Threads: one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/verify/prober_lanes.h"

namespace reprise {

class RequestProof {
 public:
  RequestProof(const ProofSubject& subject, ProofRunners& runners)
      : subject_(subject), runners_(runners) {}

  // Some node takes the range of a whole request, or may take its end.
  bool applies() const;

  struct Found {
    std::string reason;  // stated in words, for people
    // By axis: what the ops ask of the rows of masks.
    std::vector<std::map<std::string, CountingPlaces>> must_count, together;
  };
  // `lanes`: of the model; `largest`: bucket that it takes, by axis. The error says why requests
  // cannot be packed.
  absl::StatusOr<Found> Run(ProberLanes& lanes, absl::Span<const InputRange> ranges,
                            absl::Span<const int64_t> largest) const;

 private:
  const ProofSubject& subject_;
  ProofRunners& runners_;
};

}  // namespace reprise
