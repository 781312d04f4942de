// ModelVariants: a model as it is when a request overrides some of its initialisers.
//
// Initialisers that are listed as inputs are constants for requests that do not send them: they
// fold away, and padding, batching and buckets work as for any model. A request that sends some is
// served by a variant of the model in which these are inputs. It is built when a stream first asks
// for it, and runs at exact sizes, alone: nothing is certified about the effect of such inputs.
//
// Ownership: a variant is shared and outlives its leaving the list. Threads: all methods from any.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/graph/held_graph.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/model_io.h"
#include "runtime/passes/kit/node_choice.h"
#include "runtime/recipe/key.h"

namespace reprise {

class Tail;

struct ModelVariant {
  HeldGraph graph;
  GraphFingerprint fingerprint;
  std::vector<int> recipe_inputs;    // position in the model's inputs of each input of a recipe
  std::shared_ptr<const Tail> tail;  // null: the graph is all of the model
};

// Values of shape inputs are part of the key; longer ones are data.
inline constexpr int64_t kMaxShapeInputElements = 64;

class ModelVariants {
 public:
  // `imported`: the graph before any pass; `inputs`, `outputs`: the model's, with the symbols of
  // its axes.
  ModelVariants(Graph imported, std::vector<ModelIo> inputs, std::vector<ModelIo> outputs,
                NodeChoice cut);

  // Returns the indices of the inputs whose values decide shapes in some variant: part of the
  // binding then.
  const std::vector<int>& shape_inputs() const { return shape_inputs_; }

  // Returns the variant with the optional inputs at `overrides`, in ascending order.
  absl::StatusOr<std::shared_ptr<const ModelVariant>> Get(const std::vector<int>& overrides);

 private:
  Graph WithInputs(const std::vector<int>& overrides) const;

  // Constant after construction.
  const HeldGraph imported_;
  const std::vector<ModelIo> inputs_;
  const std::vector<ModelIo> outputs_;
  const NodeChoice cut_;  // see ModelOptions
  std::vector<int> shape_inputs_;
  // Guarded.
  Mutex mutex_;
  std::map<std::vector<int>, std::shared_ptr<const ModelVariant>> built_ GUARDED_BY(mutex_);
};

// Returns the indices of the inputs whose values reach an operand that decides a shape, and that
// look as if they were sent for that: integers or bools of rank 0 or 1, few, and not one for each
// element of another input. Other values that reach such an operand are data, and the graph is cut
// there.
std::vector<int> FindShapeInputs(const Graph& graph, const std::vector<ModelIo>& inputs);

}  // namespace reprise
