// ModelVariants: a model as it is when a request overrides some of its initialisers.
//
// Initialisers that are listed as inputs are constants to everybody who does not send them: they
// fold away, and padding, batching and buckets are those of any model. A request that sends some is
// served by a variant of the model in which these are inputs. It is built when a stream first asks
// for it, and runs at exact sizes, alone: nothing is certified about what such inputs do.
//
// Ownership: a variant is shared and outlives its leaving the list. Threads: all methods from any.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/mutex.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/key.h"

namespace reprise {

struct ModelVariant {
  Graph graph;
  GraphFingerprint fingerprint;
  std::vector<int> recipe_inputs;  // position in the model's inputs of each input of a recipe
};

class ModelVariants {
 public:
  // `imported`: the graph before any pass; `inputs`: the model's, with the symbols of its axes.
  ModelVariants(Graph imported, std::vector<ModelIo> inputs);

  // Positions of the inputs whose values decide shapes in some variant: part of the binding then.
  const std::vector<int>& shape_inputs() const { return shape_inputs_; }

  // The variant with the optional inputs at `overrides`, in ascending order.
  absl::StatusOr<std::shared_ptr<const ModelVariant>> Get(const std::vector<int>& overrides);

 private:
  Graph WithInputs(const std::vector<int>& overrides) const;

  // Constant after construction.
  const Graph imported_;
  const std::vector<ModelIo> inputs_;
  std::vector<int> shape_inputs_;
  // Guarded.
  Mutex mutex_;
  std::map<std::vector<int>, std::shared_ptr<const ModelVariant>> built_ GUARDED_BY(mutex_);
};

// Positions of the inputs whose values reach an operand that decides a shape.
std::vector<int> FindShapeInputs(const Graph& graph, const std::vector<ModelIo>& inputs);

// UNIMPLEMENTED, naming node and input, when the condition of an If is made of data: of an input
// that is no small bool or integer of constant dims, which could be part of the binding.
absl::Status CheckConditions(const Graph& graph, const std::vector<ModelIo>& inputs);

}  // namespace reprise
