// Compile: the walk of a capture, from a symbolic graph and a binding to a recipe.
//
// Specialise, rewrite, choose a kernel for each node, plan memory, bind. It touches no weight and
// keeps no graph. The results of the passes and of the choice can be kept as a plan, from which
// Rebind makes the recipe again at a fraction of the cost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/debug_log.h"
#include "runtime/device/device.h"
#include "runtime/graph/held_graph.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/recipe/kernel_choices.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// The decisions of a compilation, without any address.
struct CompiledPlan {
  std::string graph;     // specialised and rewritten, as text
  std::string symbolic;  // its text before it got its sizes, for people; empty: it is long
  std::vector<std::string> kernels;  // indexed by node; empty: a view
  // By node: which of several kernels is the fastest is a question of timing. Not kept on disk.
  struct Question {
    std::string text;                  // KernelOption::question; empty: there is none
    std::vector<std::string> kernels;  // candidates to choose from
  };
  std::vector<Question> questions;
  // By node: the first of its launches, one or one a row; -1: a view. Not kept on disk.
  std::vector<int> launches;
};

struct CompileOptions {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  PipelineOptions passes;  // precision is the key's
  SpecializeOptions specialize;
  // The axis that is dim 0 of every non-scalar input, or empty. If set, kernels may leave out the
  // rows of a replay that carry no request (Frame::live_rows).
  std::string batch_symbol;
  // The axis that is dim 0 of values with one row for each segment of a packed graph, or empty;
  // kernels may leave out empty segments (Frame::live_segments).
  std::string segments_symbol;
  // The answers that timing gave so far; null: none. A node without one gets its first option.
  const KernelChoices* choices = nullptr;
  DebugLog* debug = nullptr;  // receives the log of phases, passes and kernels
  // Takes room for a parameter in this form, next to the form for the node's first option; asked
  // only where Compile takes an answer that wants it. Returns false where there is no room: then
  // the first option is taken.
  // Null: there always is.
  std::function<bool(const ParameterExpr&)> hold_second;
  // Returns whether that room is taken already: Rebind asks nothing else, as its kernels are
  // decided. Null: yes.
  std::function<bool(const ParameterExpr&)> holds;
  // Filled where it is not null.
  CompiledPlan* plan = nullptr;
  // Asked between the stages, and between the nodes of long stages: an error ends the compilation,
  // which returns it. Null: it runs to its end.
  std::function<absl::Status()> go_on;
};

// A graph that passes have rewritten, and the time that this took.
struct Rewritten {
  HeldGraph graph;
  CompileTimes times;
};

// Does the first half of Compile: specialises and runs the passes. Depends on no other recipe.
absl::StatusOr<Rewritten> Rewrite(const Graph& symbolic, const RecipeKey& key,
                                  const CompileOptions& options);
// Does the second half: kernels, which may depend on the ones that earlier recipes have chosen,
// places, launches.
absl::StatusOr<std::unique_ptr<Recipe>> Assemble(Rewritten rewritten, RecipeKey key,
                                                 const CompileOptions& options);

// Does both. Errors: INVALID_ARGUMENT when the shapes do not agree at the key's binding,
// FAILED_PRECONDITION when a shape depends on data, RESOURCE_EXHAUSTED when a size limit is passed;
// all name the node.
absl::StatusOr<std::unique_ptr<Recipe>> Compile(const Graph& symbolic, RecipeKey key,
                                                const CompileOptions& options);

// Returns the recipe of a plan that Compile made for the same key on the same device. DATA_LOSS
// where the plan is none of `symbolic`'s, or names a kernel that the device does not have.
absl::StatusOr<std::unique_ptr<Recipe>> Rebind(const CompiledPlan& plan, const Graph& symbolic,
                                               RecipeKey key, const CompileOptions& options);

}  // namespace reprise
