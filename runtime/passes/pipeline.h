// The pipeline seen run by run: for people who study what each pass does to a graph.
//
// The same passes in the same order as RunLoadPasses and RunCapturePasses, which are these with
// PipelineOptions::observer as the watcher of the runs that change something.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/node.h"
#include "runtime/passes/kit/pass.h"

namespace reprise {

// One pass that ran.
struct PassRun {
  absl::string_view pass;
  bool changed = false;  // the graph
  int64_t ns = 0;        // that the pass took
};

// Called after each pass that ran, with the graph that it left.
using PassWatcher = std::function<void(const PassRun& run, const Graph& graph)>;

absl::Status WatchLoadPasses(Graph& graph, const PipelineOptions& options,
                             const PassWatcher& watcher);
absl::Status WatchCapturePasses(Graph& graph, const PipelineOptions& options,
                                const PassWatcher& watcher);

// Names of the passes of one stage, in order and each once.
std::vector<std::string> LoadPassNames();
std::vector<std::string> CapturePassNames();

// Returns the passes that join, replace or reorder nodes: PipelineOptions::disabled where each node
// is to be computed as the file has it.
std::vector<std::string> FusionPassNames();

}  // namespace reprise
