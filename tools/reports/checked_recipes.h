// The recipes that `reprise check` compiles of a model: one a bucket, and sizes that stand for an
// axis without buckets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "runtime/passes/paged/paged_form.h"

namespace reprise::cli {

struct CheckedRecipe {
  std::string bucket;
  std::vector<int64_t> sizes;            // one an axis; packed: tokens and segments
  std::unique_ptr<const Recipe> recipe;  // nullptr: refused
  absl::Status refused;

  // "batch=1,sequence=16", "tokens=512,segments=32".
  std::string BindingText(const Model& model) const;
};

// Returns the buckets of an axis of `policy`; null where it has none.
const AxisBuckets* BucketsOf(const BucketPolicy& policy, const ModelAxis& axis);

// Returns the form in which the server makes the tokens of a decoder, `stated_context` by a file
// next to it. Errors: NOT_FOUND for a model
// that is none; else why it is not served so.
absl::StatusOr<PagedForm> PagesOf(const Model& model, int64_t stated_context);

// Returns the recipes of all sizes that are tried. Not for a model with shape inputs.
std::vector<CheckedRecipe> CompileBuckets(const Engine& engine, const Model& model);
// Returns a sentence where the sizes of all axes combine to more than are compiled; else empty.
std::string LeftOutText(const Model& model);

// Returns the one whose kernels are shown: the smallest batch, and of its lengths (packed: tokens)
// the largest up to 128. Null where all of them are refused.
const CheckedRecipe* ShownOf(const Model& model, const std::vector<CheckedRecipe>& all);

}  // namespace reprise::cli
