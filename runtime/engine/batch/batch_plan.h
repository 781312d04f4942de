// BatchPlan: which requests go into one replay, decided before any of them is touched.
//
// Ownership: borrows the model. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/engine/model/batch_target.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/types/capture_target.h"
#include "runtime/engine/types/capture_ticket.h"
#include "runtime/engine/types/request.h"
#include "runtime/recipe/ready_index.h"

namespace reprise {

class BatchPlan {
 public:
  explicit BatchPlan(const Model& model) : BatchPlan(model, model.buckets()) {}
  BatchPlan(const Model& model, std::shared_ptr<const BucketPolicy> buckets)
      : model_(&model), buckets_(std::move(buckets)), cost_(model.learner().Cost()) {}

  // Adds a request if it may share a replay with the requests already in the plan, if that takes no
  // longer than a replay of its own would (as measured), and pads little (kMostSharedPadding);
  // neither is asked again for one that Choose named. The first one always fits, unless it has more
  // rows than Model::max_batch(): split it first. A request is left out as well where the plan can
  // run on a ready recipe without it and would have to wait for a capture with it. `waited`: the
  // capture that the request has waited for, if it has (see Engine::Prepare).
  bool TryAdd(const RequestShape& shape, std::shared_ptr<CaptureTicket> waited = nullptr,
              bool chosen = false);

  // Returns which of `waiting` should go into one plan with the first of them, by the cost of
  // replays: indices, the first among them.
  std::vector<size_t> Choose(absl::Span<const RequestShape* const> waiting) const;

  bool empty() const { return shapes_.empty(); }
  bool packed() const { return target_.packed; }
  // Returns the tokens of all requests of a packed plan.
  int64_t live_tokens() const { return sizes_[0]; }
  int64_t rows() const { return rows_; }
  // Returns whether no request of one row could be added: dispatch now.
  bool full() const;
  const std::vector<RequestShape>& shapes() const { return shapes_; }
  const Model& model() const { return *model_; }

  // --- How it will run. Asked by the code that runs it. ---

  // Returns the sizes of all requests together: rows added up, the largest of every other axis;
  // packed: tokens and segments, both added up.
  const std::vector<int64_t>& sizes() const { return sizes_; }
  // Returns the bucket that it is for.
  const BatchTarget& target() const { return target_; }
  const ReplayCost& cost() const { return *cost_; }
  // Returns the capture that request `i` has waited for; null: it did not wait.
  CaptureTicket* waited(size_t i) const { return waited_[i].get(); }

  struct Resolution {
    absl::Status status;                   // not OK: it will not run
    std::shared_ptr<const Recipe> recipe;  // null: eagerly, or not resolved
    CaptureOutcome outcome = CaptureOutcome::kReplayed;
    std::shared_ptr<const ModelVariant> variant;  // null: the model itself
    bool decided = false;
  };
  // Returns Engine::Prepare's resolution, so that Run looks nothing up again.
  const std::optional<Resolution>& resolution() const { return resolution_; }
  void Resolve(Resolution resolution) { resolution_ = std::move(resolution); }

  // Returns the target of a recipe that serves the plan; the target of the exact sizes.
  BatchTarget TargetOf(const Recipe& recipe) const;
  absl::StatusOr<BatchTarget> ExactTarget() const { return TargetFor(sizes_, /*exact=*/true); }
  // Returns the time that a replay of `rows` rows on `target` is expected to take.
  double ExpectedNs(const BatchTarget& target, int64_t rows) const;
  RecipeKey Key(const ModelVariant* variant = nullptr) const;
  CaptureTarget CaptureTargetOf(const BatchTarget& target,
                                std::shared_ptr<const ModelVariant> variant = nullptr) const;
  // Return properties of the graph that the plan runs on: ready recipes, axes along which a larger
  // one serves, and the one of these that costs no time.
  const ReadyIndex& ready_index() const;
  std::set<std::string> paddable() const;
  const std::string& cheap_symbol() const;
  // Asked where the model has_many_buckets(). Returns whether the plan's own recipe, captured now,
  // is done sooner than a replay on `larger`.
  bool SoonerOnItsOwn(const BatchTarget& larger) const;
  // Returns a bucket that holds the plan and the sizes of the `ready` recipes, so that others after
  // it need no capture; nullopt where there is none, or the plan is done sooner on its own.
  std::optional<BatchTarget> RoomierTarget(const RecipeList& ready) const;
  // The plan as it would have been, had a recipe been ready. nullopt: it is as good as can be.
  struct Wished {
    BatchTarget target;
    int64_t rows = 0;
  };
  std::optional<Wished> wished() const;

 private:
  absl::StatusOr<BatchTarget> TargetFor(const std::vector<int64_t>& sizes, bool exact) const;
  absl::StatusOr<BatchTarget> PackedTargetFor(const std::vector<int64_t>& sizes) const;
  // Returns whether requests that bring `sizes` together share a packed replay.
  bool FitsPacked(const PackedSizes& sizes) const;
  std::vector<size_t> ChoosePacked(absl::Span<const RequestShape* const> waiting) const;
  // Returns whether a ready recipe can serve `target`.
  bool Served(const BatchTarget& target);
  // Returns the joint sizes of the plan and one more request, nullopt where they may not share a
  // replay.
  std::optional<std::vector<int64_t>> Join(const std::vector<int64_t>& sizes,
                                           const RequestShape& shape) const;
  // Remembers that `shape` would have joined had there been a recipe.
  void Wish(const RequestShape& shape);
  // Returns whether both have the same sizes along every axis but the batch.
  bool SameLengths(const RequestShape& a, const RequestShape& b) const;

  const Model* model_;
  std::shared_ptr<const BucketPolicy> buckets_;  // the set that it began with
  std::shared_ptr<const ReplayCost> cost_;
  std::vector<RequestShape> shapes_;
  std::vector<int64_t> sizes_;
  int64_t rows_ = 0;
  BatchTarget target_;
  int64_t alone_tokens_ = 0;                            // all requests' own buckets together
  std::vector<std::shared_ptr<CaptureTicket>> waited_;  // one per request; null: did not wait
  std::shared_ptr<const RecipeList> ready_;             // looked at once, when first needed
  std::vector<int64_t> wished_sizes_;                   // empty: it is as good as can be
  int64_t wished_rows_ = 0;
  std::optional<Resolution> resolution_;
};

}  // namespace reprise
