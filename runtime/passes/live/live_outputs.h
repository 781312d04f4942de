// LiveOutputs: answers in which dims along axes became one, as a detector's heads lie over height
// times width one after another, with each request's elements in front.
//
// Nothing in front of an answer is changed: its elements are moved once, by a reprise.LiveCompact
// (ops/windows/live.h). Which dims became one is followed back from the answer, through whatever
// leaves a dim as it is; where that leads nowhere the answer stays as it is.
//
// Ownership: borrows the graph, which it changes. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/passes/live/live_extents.h"

namespace reprise {

class LiveOutputs {
 public:
  struct Axis {
    std::string symbol;
    LiveExtents extents;  // found in this graph
  };

  // `axes`: those that the graph has an input for.
  LiveOutputs(Graph& graph, std::vector<Axis> axes) : graph_(graph), axes_(std::move(axes)) {}

  void Run();

 private:
  // Dims of a value that became one.
  struct Part {
    ValueId value = kNone;
    int64_t first = 0, last = 0;
  };

  // Returns the parts of dim `dim`, in order; nullopt where they are not found.
  std::optional<std::vector<Part>> PartsOf(ValueId value, int64_t dim);
  std::optional<std::vector<Part>> FindParts(ValueId value, int64_t dim);
  std::optional<std::vector<Part>> ThroughView(const Node& node, int64_t dim);
  std::optional<std::vector<Part>> ThroughConcat(const Node& node, int64_t dim);
  std::optional<std::vector<Part>> ThroughOperands(const Node& node, ValueId value, int64_t dim);
  const SizeList* SizesOf(ValueId value) const { return axes_.front().extents.SizesOf(value); }

  // Returns the axis that a dim lies along, and how many positions of it a request has.
  std::optional<std::pair<size_t, Extent>> AlongAxis(ValueId value, int64_t dim) const;
  // Returns whether some request's elements do not lie in front as they are.
  bool IsScattered(const std::vector<Part>& parts) const;
  void Compact(size_t output, int64_t dim, const std::vector<Part>& parts);
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId SizesOf(const Part& part);

  Graph& graph_;
  const std::vector<Axis> axes_;
  std::string source_op_, source_name_;  // the answer that is looked at has them
  // The parts of dims that were followed back.
  std::map<std::pair<ValueId, int64_t>, std::optional<std::vector<Part>>> known_;
};

}  // namespace reprise
