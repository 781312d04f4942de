// PaddingProof: along which axes of a model requests may be padded, read off the model.
//
// Nothing is run: the ops prove it for every request, or the axis runs exact and the certificate
// names the node.
//
// Ownership: borrows the subject. Threads: one caller; Prove before the model is shared, Extend at
// any time while it serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/verify/axis_proof.h"
#include "runtime/verify/proof_subject.h"
#include "runtime/verify/size_choices.h"

namespace reprise {

class PaddingProof {
 public:
  // `threads`: of the caller's, on which axes are looked at side by side.
  explicit PaddingProof(const ProofSubject& subject, int threads = 1)
      : subject_(subject), threads_(threads), readings_(subject.graph, subject.axes) {}

  struct Options {
    std::vector<std::vector<int64_t>> buckets;  // one list per axis
    // Returns the largest size of an axis at which buckets may open beyond its own; 0: none. Empty:
    // for no axis.
    std::function<int64_t(size_t position)> farthest;
    // Returns whether the shapes of outputs are as they were fitted up to this size.
    std::function<bool(size_t position, int64_t size)> shapes_hold;
  };
  // Fills in the certificates of those of `axes`, which are the subject's, that have no refusal
  // yet. The shapes of its outputs are fitted.
  void Prove(std::vector<ModelAxis>& axes, const Options& options) const;

  // Looks at one more size of a certified axis, larger than its buckets. FAILED_PRECONDITION saying
  // why where padding to it could change an answer.
  absl::Status Extend(size_t position, int64_t size) const;

  // Returns OK where the requests of a model may lie one after another, in a form that has a rule
  // for every node (passes/pack), or why not: rows must keep apart, and no size of `sequence` up to
  // `largest` may decide anything. After Prove. `by_request`: the model with ranges taken by
  // request; null where it takes none.
  absl::Status ProvePacking(const Graph* by_request, size_t sequence, int64_t largest) const;

 private:
  // Calls `work` for each of [0, count), on `threads_` threads.
  void ForEach(size_t count, const std::function<void(size_t)>& work) const;
  // Fills in the certificate of one of the axes, and how far it may open larger buckets.
  void ProveOne(ModelAxis& axis, size_t position, const Options& options) const;

  const ProofSubject& subject_;
  const int threads_;
  const SizeReadings readings_;
};

}  // namespace reprise
