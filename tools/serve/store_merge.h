// MergeStores: the recipe stores of several servers as one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/recipe/store.h"

namespace reprise::cli {

struct MergedStores {
  int64_t records = 0;   // written
  int64_t pooled = 0;    // records of usage that several servers had of one model
  int64_t left_out = 0;  // damaged
};

// Adds the records of `stores` to `out`: of recipes, certificates and timed kernels the newest of
// each; records of usage are pooled (PoolUsage), with those of `out`. Errors: a record that cannot
// be written.
absl::StatusOr<MergedStores> MergeStores(const std::vector<std::unique_ptr<RecipeStore>>& stores,
                                         RecipeStore& out);

}  // namespace reprise::cli
