// SizeRegions: the regions of a model's sizes that were met, and the shapes of its outputs in each.
//
// A reading (read_sizes.h) says what the outputs are as long as the guards hold that it recorded.
// Sizes for which none of the readings so far hold are read, so that each region is read once,
// whatever number of its sizes is asked for.
//
//   SizeRegions regions(graph, {.axes = {{"batch", 2}, {"sequence", 5}}});
//   ASSIGN_OR_RETURN(const auto shapes, regions.ShapesAt({{"sequence", 128}}));  // batch stays 2
//
// Ownership: `graph` outlives it. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/region.h"
#include "runtime/shapes/term.h"

namespace reprise {

class SizeRegions {
 public:
  // The number of regions that are remembered, the latest ones, and that are read of any model.
  static constexpr size_t kMost = 64;
  // A model of few nodes may have more of them: this is the limit of nodes in all readings. A model
  // whose shapes each size decides in a way of its own has no end of regions.
  static constexpr size_t kMostNodes = 1 << 16;
  // Bytes of tables that readings evaluate in all.
  static constexpr int64_t kMostEvaluated = 32 << 20;

  // `on_read`, where it is given, sees the whole reading of each region that is taken.
  SizeRegions(const Graph& graph, Binding base, size_t most_nodes = kMostNodes,
              std::function<void(const SizeReading&)> on_read = nullptr)
      : graph_(graph),
        base_(std::move(base)),
        most_(std::max(kMost, most_nodes / std::max<size_t>(1, graph.num_nodes()))),
        on_read_(std::move(on_read)) {}

  struct Output {
    DType dtype = DType::kUndefined;
    SizeList shape;
  };
  struct Region {
    // Why the model takes none of its sizes though their shapes agree: it reads at a known place
    // that its data does not have.
    absl::Status status;
    std::unique_ptr<const SizeTable> table;
    std::vector<Output> outputs;
    SizeEvaluator sizes;  // At the sizes that were asked for last.
  };

  // Returns the shapes of the outputs at `axes`; axes that are not named have the size of the base.
  // Errors: those of ReadSizes where the model does not take the sizes, INVALID_ARGUMENT where it
  // reads beyond its data, RESOURCE_EXHAUSTED where there would be more regions than are read,
  // which has_too_many() says from then on, and too_many() in words.
  absl::StatusOr<std::vector<Shape>> ShapesAt(const std::map<std::string, int64_t>& axes);

  // Checks that the model takes `axes`, as Specialize without limits says it: it may read beyond
  // its data. Regions beyond those that are remembered are read each time.
  absl::Status Takes(const std::map<std::string, int64_t>& axes);

  // Returns whether a reading that failed at other sizes says that it fails at these as well: the
  // guards that it had recorded until then hold. Takes reads them again, for the words of its
  // status.
  bool IsRefused(const std::map<std::string, int64_t>& axes);

  // Returns the next size of axis `symbol` after `size` to look at, so that every region up to
  // `largest` is met whose end one of these sizes shows: all multiples of `step` up to kMostWalked,
  // then some that are farther, and those where guards of regions that were met end.
  int64_t After(const std::string& symbol, int64_t size, int64_t largest, int64_t step = 1) const;
  static constexpr int64_t kMostWalked = 2048;
  // Returns the same where the sizes asked for last are `size` along the axis and nothing is asked
  // of what lies within a region, of sizes that are taken or refused: its end, where its guards
  // tell it.
  int64_t EndAlong(const std::string& symbol, int64_t size, int64_t largest, int64_t step = 1);

  // A size of an axis from which on another graph is run than just below it.
  struct Boundary {
    int64_t from = 0;
    NodeId node = kNone;  // the node whose rule had to decide; kNone: the model's own bounds
  };
  // Returns the boundaries along axis `symbol` from `smallest` up to `largest`, ascending, and
  // stops after `most` of them; sizes that the model does not take have none.
  std::vector<Boundary> BoundariesAlong(const std::string& symbol, int64_t smallest,
                                        int64_t largest, int64_t step, size_t most);

  // Returns the regions, the one that was met last first.
  const std::vector<std::unique_ptr<Region>>& regions() const { return regions_; }
  bool has_too_many() const { return !too_many_.empty(); }
  const std::string& too_many() const { return too_many_; }
  // Resets the counts that these limits bound.
  void AllowMore() {
    num_read_ = 0;
    evaluated_ = 0;
    too_many_.clear();
  }
  const Graph& graph() const { return graph_; }

 private:
  // Sizes that the model does not take, all for the same reason.
  struct Refused {
    std::unique_ptr<const SizeTable> table;
    SizeEvaluator sizes;  // At the sizes that were asked for last.
  };

  absl::StatusOr<Region*> At(const std::map<std::string, int64_t>& axes);
  // Keeps `table`, of a reading that failed at `binding`.
  void Refuse(std::unique_ptr<const SizeTable> table, const Binding& binding);
  // Returns the reading that failed for all sizes of its region, to which these belong, moved to
  // them; nullptr: none is known.
  Refused* RefusedAt(const Binding& binding);
  // Returns the node of the first guard of `region` that does not hold at `size`.
  NodeId NodeThatEnds(const Region& region, const std::string& symbol, int64_t size) const;

  const Graph& graph_;
  const Binding base_;
  const size_t most_;  // regions that are read
  const std::function<void(const SizeReading&)> on_read_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::deque<Refused> refused_;
  size_t num_read_ = 0;
  int64_t evaluated_ = 0;
  std::string too_many_;
};

}  // namespace reprise
