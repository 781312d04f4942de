// SliceProof: whether what is certified of a model holds at given sizes of the axes that decide.
//
// The model with these sizes fixed is a model of fewer axes. What loading asked of the whole one is
// asked of it: do the ops let positions meet along an axis that is padded (padding_leak.h), does
// its size decide anything, and do the outputs follow it as they do elsewhere (output_shapes.h)?
// Nothing is run.
//
// Ownership: borrows the subject. Threads: any; a few specialisations of the model long.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/verify/padding_leak.h"
#include "runtime/verify/proof_subject.h"
#include "runtime/verify/size_slices.h"

namespace reprise {

class SliceProof {
 public:
  // `largest`: by axis, the largest bucket that it is padded to; 0: it is not padded.
  SliceProof(const ProofSubject& subject, const SizeSlices::Slice& slice,
             std::vector<int64_t> largest);

  // FAILED_PRECONDITION that says along which axis nothing may be padded there, and why.
  absl::Status Run() const;

 private:
  absl::Status ProveAxis(const SizeReadings& readings, size_t position) const;
  // Returns the largest bucket of the axis at `position` that the model takes there; 0: none.
  int64_t LargestTaken(size_t position) const;
  // Returns why the outputs are no longer those that replays are cut by.
  absl::Status CompareOutputs() const;
  // Returns whether the axis at `position` of axes_ is padded.
  bool IsPadded(size_t position) const { return largest_[positions_[position]] > 0; }

  const ProofSubject& subject_;
  const std::vector<int64_t> largest_;    // indexed like the subject's axes
  std::map<std::string, int64_t> fixed_;  // keyed by symbol
  std::vector<ModelAxis> axes_;           // those that are not fixed
  std::vector<size_t> positions_;         // their positions in the subject's
};

}  // namespace reprise
