// SplitAxes: the axes of a model taken apart, for requests whose sizes do not fit them.
//
// An axis joins dims that have one name, since padding relies on that. The model may take other
// sizes: exporters give one name to dims that have nothing in common, and a dim that the model
// broadcasts may be 1. Such a request runs alone and unpadded, by a variant of the model in which
// every dim of every input has a size of its own. Whether the model takes the sizes is found out
// when the variant is specialised to them; sizes that are known to fail are refused before that.
//
// Threads: all methods but Learn from any, once the model is shared.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/graph/held_graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/read/axes.h"

namespace reprise {

class SplitAxes {
 public:
  // A model with its axes taken apart.
  struct Whole {
    Graph graph;                       // as after the load passes
    std::vector<int> recipe_inputs;    // see ModelVariant
    std::shared_ptr<const Tail> tail;  // null: the graph is all of it
  };
  // `inputs`: the model's, with the dims that its file declares. Optional ones keep theirs.
  // `derived`: the expressions that symbols follow from, which no file says.
  SplitAxes(std::vector<ModelIo> inputs, const std::map<std::string, std::string>& derived,
            Whole whole);

  // Returns the number of symbolic dims of the inputs that are not optional.
  size_t num_symbols() const { return num_symbols_; }
  // Returns the graph with a symbol of its own for every dim.
  const Graph& graph() const { return *graph_; }
  // Returns those dims, by input that is not optional.
  std::vector<std::vector<Dim>> Dims() const;
  // Takes the result of MergeSymbols of Dims(): dims that the shape rules force to be equal, and
  // dims that they fix. Sizes that disagree with it are not tried.
  void Learn(const MergedSymbols& found);

  // Returns the size of every symbol of Dims(), by input and dim (a nullptr is left out). nullopt
  // where the model is known to refuse `shapes`: by a rank, by a constant, by two sizes of dims
  // that must be equal (a size of 1 does not count, for it may broadcast), by a dim that follows
  // from others.
  std::optional<std::map<std::string, int64_t>> Match(absl::Span<const Shape* const> shapes) const;
  // Returns which dims of `shapes`, which Match refuses, must be equal and are not; empty: it is
  // for another reason.
  std::string Disagreement(absl::Span<const Shape* const> shapes) const;

  // Returns the variant; RESOURCE_EXHAUSTED without memory.
  absl::StatusOr<std::shared_ptr<const ModelVariant>> Variant() const;

 private:
  // The facts that are known of a dim.
  struct Known {
    std::string symbol;   // its own; empty: the file declares its size
    std::string follows;  // the expression over other dims that it is; empty: none
    int joined = -1;      // dims of one number are equal
    int64_t fixed = -1;   // the only size that it may have
  };
  // Returns whether the dims that are expressions have the size that these give, or 1.
  bool MatchesDerived(absl::Span<const Shape* const> shapes) const;

  void Apply(Graph& graph) const;

  // Constant after loading.
  const std::vector<ModelIo> inputs_;
  HeldGraph graph_;
  const std::vector<int> recipe_inputs_;
  const std::shared_ptr<const Tail> tail_;
  std::vector<std::vector<Known>> known_;  // input by input, dim by dim
  size_t num_symbols_ = 0;
  // Guarded.
  mutable Mutex mutex_;
  mutable std::shared_ptr<const ModelVariant> variant_ GUARDED_BY(mutex_);
};

// Returns why a request got no recipe: where its sizes are the reason, also how they differ from
// the axes (RequestShape::misfit).
absl::Status WithMisfit(absl::Status status, const std::string& misfit);

}  // namespace reprise
