#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

ValueId Ints(Graph& graph, std::vector<int64_t> values) {
  return graph.AddConstant("", Tensor::Int64s(std::move(values)));
}

// Joins runs of pieces, then the results.
absl::StatusOr<ValueId> JoinInRuns(Graph& graph, std::vector<ValueId> pieces, int64_t axis,
                                   std::string name) {
  while (pieces.size() > kMostPieces) {
    std::vector<ValueId> joined;
    for (size_t begin = 0; begin < pieces.size(); begin += kMostPieces) {
      const size_t end = std::min(pieces.size(), begin + kMostPieces);
      ASSIGN_OR_RETURN(
          const ValueId run,
          AddInferred(graph, ConcatOp::kName, {pieces.begin() + begin, pieces.begin() + end},
                      {{"axis", axis}}, name));
      joined.push_back(run);
    }
    pieces = std::move(joined);
  }
  return AddInferred(graph, ConcatOp::kName, std::move(pieces), {{"axis", axis}}, name);
}

// Returns the size of each output of a Split along the axis; nullopt where they are not known.
std::optional<std::vector<int64_t>> PartSizesOf(const Graph& graph, const Node& split,
                                                int64_t axis) {
  const Tensor* given = split.input(1) == kNone ? nullptr : KnownConstant(graph, split.input(1));
  if (given != nullptr) {
    auto sizes = given->ToInt64s();
    return sizes.ok() ? std::optional(*std::move(sizes)) : std::nullopt;
  }
  std::vector<int64_t> sizes;
  for (const ValueId output : split.outputs) {
    if (output == kNone) return std::nullopt;
    sizes.push_back((*ShapeOf(graph, output))[axis]);
  }
  return sizes;
}

// Makes a Slice for each run of outputs, which a Split of its own cuts up. False: it stays.
absl::StatusOr<bool> SplitInRuns(Graph& graph, NodeId id) {
  const Node split = graph.node(id);
  const ValueId input = split.inputs[0];
  int64_t axis = ConcatOp::From(split.attributes).axis;
  if (axis < 0) axis += static_cast<int64_t>(ShapeOf(graph, input)->size());
  const auto sizes = PartSizesOf(graph, split, axis);
  if (!sizes.has_value() || sizes->size() != split.outputs.size()) return false;
  int64_t at = 0;
  for (size_t begin = 0; begin < split.outputs.size(); begin += kMostPieces) {
    const size_t end = std::min(split.outputs.size(), begin + kMostPieces);
    const std::vector<int64_t> of_run(sizes->begin() + begin, sizes->begin() + end);
    const int64_t stop = std::accumulate(of_run.begin(), of_run.end(), at);
    const ValueId from = Ints(graph, {at}), to = Ints(graph, {stop}), along = Ints(graph, {axis});
    ASSIGN_OR_RETURN(const ValueId run,
                     AddInferred(graph, SliceOp::kName, {input, from, to, along}, {}, split.name));
    at = stop;
    const NodeId part = graph.AddNode(SplitOp::kName, {run, Ints(graph, of_run)}, {{"axis", axis}},
                                      end - begin, split.name);
    RETURN_IF_ERROR(InferNode(graph, part));
    for (size_t i = begin; i < end; ++i) {
      if (split.outputs[i] == kNone) continue;
      Replace(graph, split.outputs[i], graph.node(part).outputs[i - begin]);
    }
  }
  return true;
}

absl::StatusOr<bool> SplitWideAt(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op == ConcatOp::kName && node.inputs.size() > kMostPieces) {
    const ValueId output = node.outputs[0];
    ASSIGN_OR_RETURN(
        const ValueId joined,
        JoinInRuns(graph, node.inputs, ConcatOp::From(node.attributes).axis, node.name));
    Replace(graph, output, joined);
    return true;
  }
  if (node.op == SplitOp::kName && node.outputs.size() > kMostPieces) {
    return SplitInRuns(graph, id);
  }
  return false;
}

}  // namespace

std::unique_ptr<Pass> SplitWide() { return PassOfNodes("split_wide", SplitWideAt); }

}  // namespace reprise
