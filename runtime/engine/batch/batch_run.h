// BatchRun: one batch of requests through one replay: find or capture the recipe, gather, replay,
// scatter.
//
// Ownership: borrows everything for the length of one call. Threads: the stream's caller.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/engine/batch/scatter.h"
#include "runtime/engine/model/eager_cache.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/packing/packed_frame.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/engine/types/engine_options.h"
#include "runtime/engine/types/miss_report.h"
#include "runtime/engine/types/run_control.h"

namespace reprise {

class BatchRun {
 public:
  BatchRun(const EngineOptions& options, RecipeCache& cache, EagerCache& eager, MissReport& misses,
           const BatchPlan& plan, BatchPlan::Resolution resolution,
           absl::Span<const Request* const> requests, Stream& stream, StopFlag* stop);

  // Runs the batch. `batch`: the id of this replay. Returns one response a request, in order.
  std::vector<Response> Run(int64_t batch);

  // Return, after Run, its target and its duration; 0 if nothing was replayed.
  const BatchTarget& target() const { return target_; }
  int64_t replay_ns() const { return replay_ns_; }
  // Returns the part that its responses still lack, or null: they hold the results of the recipe
  // then.
  const Tail* tail() const;
  // Returns the requests that failed for a datum which may be the padding's: answered at their
  // exact size they may be right.
  const std::vector<size_t>& doubtful() const { return doubtful_; }
  const Recipe& recipe() const { return *recipe_; }

 private:
  // Finds the recipe for the batch: as resolved, or captured now.
  absl::Status FindRecipe();
  absl::Status Capture();
  // Returns how request `i`, whose answer is OK, got its recipe.
  CaptureOutcome OutcomeOf(size_t i, bool first);
  // Marks the point from which the time counts, and others see that.
  void BeginComputing();
  // Returns the responses of a batch whose replay ended within launch `launch`: why it did.
  std::vector<Response> Ended(int launch) const;
  // Copies the requests to the stream's inputs, but for inputs that a kernel can read in the
  // request's own memory.
  void Gather() const;
  // Copies request `i` alone, the others' rows being padding.
  void GatherOnly(size_t i) const;
  // Copies the bytes of requests [first, last) for input `slot` of the recipe; the rest is padding.
  void CopyIn(size_t slot, size_t first, size_t last) const;
  // Does the same for a slot that says which positions belong to requests
  // (ModelSignature::live_inputs).
  void WriteLive(size_t slot, size_t first, size_t last) const;
  // Returns the value that padding of the slot is filled with.
  double PaddingOf(const TensorSlot& slot, int position) const;
  // Fails the requests whose data the kernels could not use. Which of several it was is found by
  // replaying each of them alone in its place: errors are rare, and a flattened or transposed index
  // does not tell its request. `errors`: of the replay of all of them.
  void FailOffenders(FirstDataError& errors, const Frame& frame, const Scatter& scatter,
                     std::vector<Response>& responses);
  absl::Status ErrorFor(const DataError& error, const Request& request) const;
  // Returns whether `error`, of a replay of request `i` alone, may be made of padding.
  bool MayBeOfPadding(const DataError& error, size_t i) const;
  // Returns whether input `position` of the request holds `value`.
  bool Holds(const Request& request, int position, int64_t value) const;
  // Returns whether the time for which the replay waits for a core is measured.
  bool IsMetered() const;
  // Returns whether the replay counts the rows of its requests (Frame::live_rows).
  bool HasRows() const;
  // Returns whether answer `i` names the target's bucket. Where some axis has no buckets, a request
  // whose positions fill the buckets of the others was served at its exact shape.
  bool SaysBucket(size_t i) const;
  // Records the replay. `busy_ns`: its time, without the time that it waited for a core, if that
  // was measured.
  void Observe(int64_t busy_ns) const;
  void RecordRequest(const RequestShape& shape) const;
  // Returns where the rows of request `i` begin in the batch.
  int64_t FirstRow(size_t i) const { return first_row_[i]; }
  const std::vector<int>& RecipeInputs() const;

  const EngineOptions& options_;
  RecipeCache& cache_;
  EagerCache& eager_;
  MissReport& misses_;
  const BatchPlan& plan_;
  const Model& model_;
  absl::Span<const Request* const> requests_;
  Stream& stream_;
  StopFlag* const stop_;
  RunControl control_;
  std::vector<int64_t> first_row_;
  std::vector<PackedPart> packed_;  // one per request of a packed plan
  BatchPlan::Resolution resolution_;
  BatchTarget target_;  // the recipe's, which may be larger than the plan's
  int64_t replay_ns_ = 0;
  std::vector<size_t> doubtful_;

  std::shared_ptr<const ModelVariant> variant_;  // null: the model itself
  std::shared_ptr<const Recipe> recipe_;
  std::shared_ptr<const ParameterTable> parameters_;
  RecipeCache::Outcome outcome_ = RecipeCache::Outcome::kHit;
};

}  // namespace reprise
