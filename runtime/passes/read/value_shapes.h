// ValueShapes: the shapes of all values of a model at any sizes, and whether it takes these sizes.
//
// Read, not specialised (read_sizes.h): as long as the region is the one that was met last, another
// size only evaluates terms.
//
//   ValueShapes shapes(graph, {.axes = {{"batch", 1}, {"sequence", 5}}});
//   RETURN_IF_ERROR(shapes.Takes({{"sequence", 4096}}));  // batch stays 1
//
// Axes that are not named have the size of the base.
//
// Ownership: `graph` outlives it. Threads: one at a time.
// Errors: those of ReadSizes where the model does not take the sizes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/region.h"

namespace reprise {

class ValueShapes {
 public:
  explicit ValueShapes(const Graph& graph, Binding base = {})
      : graph_(graph), base_(std::move(base)) {}

  using Sizes = std::map<std::string, int64_t>;
  // Indexed by value; none where the walk does not come to one.
  using Shapes = std::vector<std::optional<Shape>>;

  absl::StatusOr<Shapes> At(const Sizes& axes);

  // Returns the error that Specialize with the limits of `options` would return, without making a
  // graph.
  absl::Status Takes(const Sizes& axes, const SpecializeOptions& options = {});

  // Bytes of inputs and of what nodes make of data; numbers beyond int64 count as the largest one.
  struct Bytes {
    int64_t all = 0;
    int64_t largest_node = 0;   // what one node reads and makes together
    int64_t largest_table = 0;  // a value that follows from sizes alone, and is none of the above
    bool reads_beyond = false;  // a node reads at a known place that its data do not have
  };
  absl::StatusOr<Bytes> BytesAt(const Sizes& axes);

 private:
  // Makes `reading_` one whose region has the sizes, and moves `sizes_` there.
  absl::Status MoveTo(const Sizes& axes);
  const SizeReading::Value& Read(ValueId id) const {
    return reading_->values[static_cast<size_t>(id)];
  }
  // Returns 0 for values that have no bytes of their own at run time: constants, parameters, those
  // of branches that are not taken.
  int64_t BytesOf(ValueId id);

  const Graph& graph_;
  const Binding base_;
  std::optional<SizeReading> reading_;
  std::optional<SizeEvaluator> sizes_;  // evaluates the terms of `reading_`
};

}  // namespace reprise
