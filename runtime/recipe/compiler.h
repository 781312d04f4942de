// Compile: the walk of a capture, from a symbolic graph and a binding to a recipe.
//
// Specialise, rewrite, choose a kernel for each node, plan memory, bind. Touches no weight and
// keeps no graph.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/device.h"
#include "runtime/passes/pass.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

struct CompileOptions {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  PipelineOptions passes;
  SpecializeOptions specialize;
  // The axis that is dim 0 of every non-scalar input, or empty. With it kernels may leave out the
  // rows of a replay that carry no request (Frame::live_rows).
  std::string batch_symbol;
};

// Errors: INVALID_ARGUMENT when the shapes do not agree at the key's binding, FAILED_PRECONDITION
// when a shape depends on data, RESOURCE_EXHAUSTED when a size limit is passed; all name the node.
absl::StatusOr<std::unique_ptr<Recipe>> Compile(const Graph& symbolic, RecipeKey key,
                                                const CompileOptions& options);

}  // namespace reprise
