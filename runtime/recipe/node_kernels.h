// NodeKernels: the kernel that each node of a graph runs on, chosen among the device's options.
//
// The first option of a node is taken, unless timing has shown another to be faster whose form of
// the weights has room; a plan that is bound again takes the kernels that its compilation chose.
//
// Threads: pure, but for the callbacks of CompileOptions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/row_walks.h"

namespace reprise {

struct NodeKernel {
  bool view = false;                   // no launch: output 0 is input 0
  bool nothing = false;                // no launch: no output has an element
  std::optional<KernelOption> option;  // nullopt: the reference kernel

  bool has_launch() const { return !view && !nothing; }
};

struct NodeKernels {
  std::vector<NodeKernel> nodes;                  // keyed by node id
  std::vector<CompiledPlan::Question> questions;  // one a node, where a plan is asked for
  // Recipe::timeable and Recipe::untimed.
  int timeable = 0;
  int untimed = 0;
};

// Chooses kernels. `kernels`: the names of the ones chosen before, by node; null: they are still to
// be chosen. `graph` holds known operators alone; nodes of `walks` get kernels for one row.
// DATA_LOSS where the device has no kernel of such a name for its node.
absl::StatusOr<NodeKernels> ChooseKernels(const Graph& graph, const RowWalks& walks,
                                          const CompileOptions& options,
                                          const std::vector<std::string>* kernels);

// Returns the name of the kernel; empty for a view.
std::string KernelOf(const Node& node, const NodeKernel& chosen);

// Returns input `i` of `node` in the form that `option` (null: the reference kernel) wants; null
// where it is no parameter.
ParameterExprPtr ParameterFor(const Graph& graph, const Node& node, size_t i,
                              const KernelOption* option);

}  // namespace reprise
