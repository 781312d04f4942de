// PolicyMaker: the buckets that a model begins with, from its options and its certificates.
//
// Threads: before the model is shared; static functions from any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/proof_sizes.h"

namespace reprise {

class PolicyMaker {
 public:
  explicit PolicyMaker(const LoaderContext& context) : context_(context) {}

  // Returns the sizes that the policy will have along an axis, as configured or by default.
  static std::vector<int64_t> BucketSizes(const ModelView& model, const ModelAxis& axis);
  static std::vector<std::vector<int64_t>> BucketsByAxis(const ModelView& model);
  // Returns the largest size of the axis at `position` at which buckets may open beyond its own:
  // one that the model takes, within its memory. 0: none, since the configuration says where
  // buckets end.
  static int64_t FarthestSize(const ModelView& model, size_t position);
  // Returns what FarthestSize depends on in the configuration of an axis, as text.
  static std::string OpeningText(const ModelOptions& options, const ModelAxis& axis);
  // Returns small sizes that the model takes: of an axis that only takes larger ones the smallest.
  static Binding SmallSizes(const Graph& graph, const std::vector<ModelAxis>& axes);
  // Returns whether the model can be specialised to a bucket of an axis.
  static absl::Status TakesBucket(const Graph& graph, const std::vector<ModelAxis>& axes,
                                  const std::string& label, int64_t size);

  // Sets the policy. INVALID_ARGUMENT for impossible buckets.
  absl::Status SetPolicy(ModelDraft& model) const;

 private:
  // Returns the sizes of BucketSizes before they are cut to the range of the axis.
  static std::vector<int64_t> UnlimitedSizes(const ModelView& model, const ModelAxis& axis);
  // Makes the learner. `policy`: the one that is in force first.
  void MakeLearner(ModelDraft& model, BucketPolicy policy) const;
  // Returns whether the model takes a size of one of the axes with these labels that is larger than
  // its buckets, and padding to it is harmless.
  std::function<bool(size_t axis, int64_t size)> TakesLarger(const ModelDraft& model,
                                                             std::vector<std::string> labels) const;
  // Drops buckets at which the model cannot be specialised.
  void LimitBuckets(ModelDraft& model, BucketPolicy& policy) const;

  LoaderContext context_;
};

}  // namespace reprise
