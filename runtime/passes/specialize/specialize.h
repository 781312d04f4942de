// Specialize: a symbolic graph and a binding give a graph with only constant shapes.
//
// All shape arithmetic folds away on the walk: a node whose inputs are all known is evaluated with
// its reference kernel, Shape and Size of a known shape become constants. The nodes that are left
// compute on data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// One concrete size for each axis, and the values of shape inputs.
struct Binding {
  std::map<std::string, int64_t> axes;         // symbol -> size
  std::map<std::string, Tensor> shape_inputs;  // input name -> its value, of any dtype

  // "batch=8,sequence=128", shape inputs as "k=[3]". Bindings of one model are equal when these
  // are.
  std::string ToString() const;
  friend bool operator==(const Binding&, const Binding&) = default;
  friend bool operator<(const Binding& a, const Binding& b) {
    return a.axes != b.axes ? a.axes < b.axes : a.ToString() < b.ToString();
  }
};

// Returns the elements of a shape input, "3,4" or "0.5,2": floats with all their digits.
std::string ElementsText(const Tensor& value);

// Results of a walk, indexed by value of the symbolic graph; empty for values it did not walk.
struct SpecializeTrace {
  std::vector<std::optional<Tensor>> constants;  // values that folded away
  std::vector<std::optional<Shape>> shapes;
};

struct SpecializeOptions {
  // The largest result that folding may allocate, and the largest value that a specialised graph
  // may hold (checked before anything is allocated): RESOURCE_EXHAUSTED names node, size, limit.
  int64_t max_folded_bytes = 64 << 20;
  int64_t max_value_bytes = int64_t{4} << 30;
  SpecializeTrace* trace = nullptr;  // set: filled in
};

// INVALID_ARGUMENT naming the node when shapes do not agree at this binding; FAILED_PRECONDITION
// "depends on data" naming the node whose output shape cannot be known. Shape inputs named in the
// binding become constants.
absl::StatusOr<Graph> Specialize(const Graph& symbolic, const Binding& binding,
                                 const SpecializeOptions& options = {});

}  // namespace reprise
