// GraphDumps: the graphs of captures as files of a folder, one a capture, for --dump-graphs.
//
// A file is called after the recipe's key, and after the number of its capture where a recipe is
// captured again: nothing is ever overwritten. Its first graph is that before it got its sizes, its
// second the one after the passes; `reprise diff` reads such files.
//
// Threads: all methods from any thread.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/engine/engine.h"

namespace reprise {

class GraphDumps {
 public:
  // Empty folder: nothing is written. `warn` is called for failures to write.
  GraphDumps(std::string folder, std::function<void(const std::string&)> warn)
      : folder_(std::move(folder)), warn_(std::move(warn)) {}

  bool wanted() const { return !folder_.empty(); }
  // Makes the folder where it is absent; UNAVAILABLE where it cannot be written.
  absl::Status Prepare() const;
  void Write(const Recipe& recipe, const RecipeGraphs& graphs) const;

 private:
  const std::string folder_;
  const std::function<void(const std::string&)> warn_;
};

}  // namespace reprise
