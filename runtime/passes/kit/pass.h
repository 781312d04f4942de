// Pass: one rewrite of a graph.
//
// A pass is a name and a Run. The pipeline, not the pass, compacts, verifies, times, dumps and can
// switch a pass off by name. A pass may leave dead nodes after and nodes out of order: the
// pipeline calls Graph::Compact() after each.
//
// Load passes run once a model on the symbolic graph; capture passes run on a specialised graph,
// where every value has a constant shape, and must set dtype and shape of each value they add
// (InferNode does).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"
#include "runtime/ops/kit/parallelism.h"
#include "runtime/ops/kit/precision.h"

namespace reprise {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual absl::string_view name() const = 0;
  // Returns whether it changed the graph.
  virtual absl::StatusOr<bool> Run(Graph& graph) const = 0;
};

// Returns a pass that is a function.
std::unique_ptr<Pass> PassOf(absl::string_view name,
                             std::function<absl::StatusOr<bool>(Graph&)> run);
// Returns a pass that calls `rewrite` for the nodes of a graph in their order, but for those that
// are gone by then; it returns whether it changed the graph.
std::unique_ptr<Pass> PassOfNodes(absl::string_view name,
                                  std::function<absl::StatusOr<bool>(Graph&, NodeId)> rewrite);

class NodePrecisions;

// One of several processes that compute a model together.
struct Shard {
  int rank = 0, ranks = 1;
  Parallelism parallelism = Parallelism::kTensor;
};

struct PipelineOptions {
  std::vector<std::string> disabled;  // pass names; an unknown one is INVALID_ARGUMENT
  Precision precision = Precision::kExact;
  const NodePrecisions* nodes = nullptr;  // nodes that have another one; null: none has
  WeightBits weights = WeightBits::kStored;
  Shard shard;         // see passes/paged/paged_passes.h
  bool verify = true;  // Verify() after each pass
  // Called after each pass that changed something: name, the graph, nanoseconds that it took.
  std::function<void(absl::string_view, const Graph&, int64_t)> observer;
};

// Names of all passes in order, load passes first.
std::vector<std::string> PassNames();

// Runs once a model: folds constants, hoists computations on parameters alone into
// parameter expressions, drops dead code. Errors name pass and node.
absl::Status RunLoadPasses(Graph& graph, const PipelineOptions& options = {});

// Once a capture, on the result of Specialize().
absl::Status RunCapturePasses(Graph& graph, const PipelineOptions& options = {});

}  // namespace reprise
