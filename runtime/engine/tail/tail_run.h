// TailRun: the tail of a model for one request, after the replay that computed its front.
//
// Sections run as recipes (see SectionRecipes). Light pieces, and nodes at cuts, run on prepared
// kernels where there is enough data, which bypass captures; over little data a section's nodes run
// one by one, and all of it by reference kernels: these take less time than looking for better.
//
// Ownership: borrows everything for the length of one call. Threads: the stream's caller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/tail/section_recipes.h"

namespace reprise {

class TailRun {
 public:
  explicit TailRun(const TailContext& context) : context_(context), recipes_(context_) {}

  // Runs the tail. `response` holds the outputs of `front`, unpadded, and becomes the model's
  // answer. Errors are in its status: INVALID_ARGUMENT for data that a node cannot use, naming node
  // and value.
  void Run(const Request& request, const Recipe& front, Response& response);

 private:
  absl::Status RunAll(const Request& request, const Recipe& front, Response& response);
  void TakeInputs(const Request& request);
  absl::Status RunGraph(const CutGraph& graph);
  absl::Status RunSection(const GraphSection& section);
  absl::Status RunLightSection(const GraphSection& section);
  absl::Status RunNodeByNode(const GraphSection& section);
  absl::Status RunAsRecipe(const GraphSection& section);
  absl::Status Replay(const GraphSection& section, const SectionRecipes::Choice& choice);
  // Returns the shape of result `output` of a section, which lies in `slot`: INTERNAL where the
  // slot does not hold it.
  absl::StatusOr<Shape> TrueShape(const TensorSlot& slot, size_t output,
                                  const SectionRecipes::Choice& choice) const;
  absl::Status RunNode(const CutGraph& graph, const EagerNode& node);
  // Records the shape of the first result of a node at a cut, which data decide.
  void NoteShape(const EagerNode& node);
  // Returns the results of `node`, which count as made by the request. `names`: of its inputs.
  absl::StatusOr<std::vector<Tensor>> EvaluateWithin(
      const Node& node, const std::vector<std::optional<Tensor>>& inputs,
      const std::vector<std::string>& names);
  // Runs the section; returns false where reference kernels are to do it.
  bool RunPrepared(const GraphSection& section);
  absl::Status RunEager(const CutGraph& graph, const EagerNode& node);
  absl::Status RunBranch(const CutGraph& graph, const EagerNode& node);
  absl::Status RunLoop(const CutGraph& graph, const EagerNode& node);
  absl::StatusOr<Tensor> ValueOf(const CutGraph& graph, const std::string& name);
  // Returns the bytes of the elements that `section` reads.
  size_t BytesRead(const GraphSection& section) const;

  const TailContext context_;
  SectionRecipes recipes_;
  SectionRecipes::Values values_;
};

}  // namespace reprise
