// TailRun: the tail of a model for one request, behind the replay that computed its front.
//
// Sections run as recipes of the engine's cache at exactly the shapes that arrive, but for light
// ones over little data: these run node by node, and no count of found things makes a recipe. One
// that is missing is captured here, on the request's thread, or compiled for this run alone where
// the request may not wait for a capture. Nodes at cuts run by their reference kernels.
//
// Ownership: borrows everything for the length of one call. Threads: the stream's caller.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/engine/captures.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/model.h"
#include "runtime/engine/stream.h"
#include "runtime/engine/tail.h"

namespace reprise {

class TailRun {
 public:
  TailRun(const EngineOptions& options, RecipeCache& cache, Captures& captures, MissReport& misses,
          const Model& model, const Tail& tail, const RequestShape& shape, Stream& stream)
      : options_(options),
        cache_(cache),
        captures_(captures),
        misses_(misses),
        model_(model),
        tail_(tail),
        shape_(shape),
        stream_(stream) {}

  // `response` holds the outputs of `front`, unpadded, and becomes the model's answer. Errors are
  // in its status: INVALID_ARGUMENT for data that a node cannot use, naming node and value.
  void Run(const Request& request, const Recipe& front, Response& response);

 private:
  absl::Status RunAll(const Request& request, const Recipe& front, Response& response);
  void TakeInputs(const Request& request);
  absl::Status RunGraph(const CutGraph& graph);
  absl::Status RunSection(const GraphSection& section);
  // A light section over little data: none of it is worth a recipe for sizes that the data makes.
  bool RunsNodeByNode(const GraphSection& section) const;
  absl::Status RunNodeByNode(const GraphSection& section);
  absl::Status Replay(const GraphSection& section);
  absl::Status RunNode(const CutGraph& graph, const EagerNode& node);
  absl::Status RunBranch(const CutGraph& graph, const EagerNode& node);
  absl::StatusOr<Tensor> ValueOf(const CutGraph& graph, const std::string& name);
  // The recipe of `section` for inputs as they are, from the cache or captured now.
  absl::StatusOr<std::shared_ptr<const Recipe>> RecipeFor(const GraphSection& section);
  absl::StatusOr<std::shared_ptr<const Recipe>> Miss(const CaptureTarget& target);
  bool IsOneTooMany(const RecipeKey& key) const;
  void Note(CaptureOutcome outcome);

  const EngineOptions& options_;
  RecipeCache& cache_;
  Captures& captures_;
  MissReport& misses_;
  const Model& model_;
  const Tail& tail_;
  const RequestShape& shape_;
  Stream& stream_;
  // By name: what pieces hand each other. A name means one value, in whichever branch it is made.
  absl::flat_hash_map<std::string, Tensor> values_;
  CaptureOutcome outcome_ = CaptureOutcome::kReplayed;
};

}  // namespace reprise
