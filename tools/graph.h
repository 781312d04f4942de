// reprise graph: the graph of a model as text, at any step between its file and its kernels.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::cli {

struct GraphOptions {
  std::string path;                  // path of a model.onnx
  std::string bucket;                // see SizesOf; empty: the symbolic graph, as it is loaded
  std::string after;                 // the step whose graph is shown; empty: the last one
  bool each = false;                 // every step that changed the graph is shown
  std::vector<std::string> without;  // passes that do not run
  Precision precision = Precision::kExact;
  bool json = false;
};

// Prints the graph that was asked for; with `json` a list of the steps, with the text of the graph
// after each that is shown. Without a bucket the steps are `import` and the load passes; with one
// they are `load` (or `pack_tokens`, for a packed bucket), `specialize` and the capture passes. A
// pass that runs again is a step of its own, "canonicalize:2". INVALID_ARGUMENT where `after` or
// `without` names nothing of this walk, listing its steps; errors of the model as Engine::Load and
// the pipeline say them.
absl::Status PrintGraph(const GraphOptions& options);

}  // namespace reprise::cli
