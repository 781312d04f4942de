// PolicyMaker: the buckets that a model begins with, from its options and its certificates.
//
// Threads: before the model is shared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/model/model.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// Sizes at which a model is looked at: small, distinct, and not 1, which broadcasts.
inline constexpr int64_t kFitBatch = 2;
// The first that it takes: of ids and steps, sides of pictures, samples of a recording.
inline constexpr int64_t kFitLengths[] = {5, 16, 64, 96, 224, 256, 512, 1024, 4096, 16384};

class PolicyMaker {
 public:
  explicit PolicyMaker(const LoaderContext& context) : context_(context) {}

  // The sizes that the policy will have along an axis, as configured or by default.
  static std::vector<int64_t> BucketSizes(const Model& model, const ModelAxis& axis);
  static std::vector<std::vector<int64_t>> BucketsByAxis(const Model& model);
  // Small sizes that the model takes: of an axis that only takes larger ones the smallest.
  static Binding SmallSizes(const Model& model);
  // Whether the model can be specialised to a bucket of an axis.
  static absl::Status TakesBucket(const Model& model, const std::string& label, int64_t size);

  // INVALID_ARGUMENT for buckets of an axis that the model does not have.
  absl::Status SetPolicy(Model& model) const;

 private:
  // `policy`: what is in force first.
  void MakeLearner(Model& model, BucketPolicy policy) const;
  // Drops buckets at which the model cannot be specialised.
  void LimitBuckets(Model& model, BucketPolicy& policy) const;

  LoaderContext context_;
};

}  // namespace reprise
