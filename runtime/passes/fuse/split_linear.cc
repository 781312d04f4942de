// A product with weights whose columns are read in pieces becomes a product for each piece: the
// gate and the value of a gated layer, queries and keys that are rotated by their positions.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/linear_columns.h"

namespace reprise {
namespace {

// Narrower products do not fill the vectors of a kernel.
constexpr int64_t kNarrowest = 32;

struct Piece {
  ValueId value;  // the piece of the product that a node takes
  int64_t begin, width;
};

// Returns the one element of a constant.
std::optional<int64_t> OnlyInt(const Graph& graph, ValueId value) {
  const Tensor* constant = value == kNone ? nullptr : KnownConstant(graph, value);
  if (constant == nullptr || constant->num_elements() != 1) return std::nullopt;
  const auto ints = constant->ToInt64s();
  if (!ints.ok()) return std::nullopt;
  return (*ints)[0];
}

// Appends the columns that `user` takes of `value`; false where it does something else with it.
bool AddPieces(const Graph& graph, const Node& user, ValueId value, std::vector<Piece>& pieces) {
  if (user.inputs[0] != value) return false;
  const Shape& shape = *ShapeOf(graph, value);
  const int64_t rank = static_cast<int64_t>(shape.size());
  const auto is_last = [&](int64_t axis) { return axis == -1 || axis == rank - 1; };
  if (user.op == SplitOp::kName) {
    if (!is_last(SplitOp::From(user.attributes).axis)) return false;
    int64_t begin = 0;
    for (const ValueId output : user.outputs) {
      if (output == kNone) return false;
      const int64_t width = ShapeOf(graph, output)->back();
      pieces.push_back({output, begin, width});
      begin += width;
    }
    return true;
  }
  const std::optional<int64_t> start = OnlyInt(graph, user.input(1));
  const std::optional<int64_t> axis = OnlyInt(graph, user.input(3));
  const bool by_ones = user.input(4) == kNone || OnlyInt(graph, user.input(4)) == 1;
  if (user.op != SliceOp::kName || !start.has_value() || !axis.has_value() || !is_last(*axis) ||
      !by_ones) {
    return false;
  }
  const int64_t begin = *start < 0 ? std::max<int64_t>(*start + shape.back(), 0) : *start;
  pieces.push_back({user.outputs[0], begin, ShapeOf(graph, user.outputs[0])->back()});
  return true;
}

// Returns the pieces of the result of `node`; empty where it is needed in one piece, or some of it
// twice.
std::vector<Piece> PiecesOf(const Graph& graph, const Node& node) {
  if (!HasColumnsToCut(graph, node) || graph.IsOutput(node.outputs[0])) return {};
  std::vector<Piece> pieces;
  for (const NodeId user : graph.value(node.outputs[0]).users) {
    if (!AddPieces(graph, graph.node(user), node.outputs[0], pieces)) return {};
  }
  int64_t columns = 0;
  for (const Piece& piece : pieces) {
    if (piece.width < kNarrowest) return {};
    columns += piece.width;
  }
  if (columns > ShapeOf(graph, node.outputs[0])->back()) return {};
  return pieces;
}

absl::StatusOr<bool> SplitLinearAt(Graph& graph, NodeId id) {
  const std::vector<Piece> pieces = PiecesOf(graph, graph.node(id));
  if (pieces.empty()) return false;
  const Node whole = graph.node(id);  // A copy: adding nodes moves them.
  for (const Piece& piece : pieces) {
    ASSIGN_OR_RETURN(std::vector<ValueId> inputs,
                     CutColumns(graph, whole, piece.begin, piece.width));
    ASSIGN_OR_RETURN(const ValueId part,
                     AddInferred(graph, whole.op, std::move(inputs), whole.attributes, whole.name));
    Replace(graph, piece.value, part);
  }
  return true;
}

}  // namespace

std::unique_ptr<Pass> SplitLinear() { return PassOfNodes("split_linear", SplitLinearAt); }

}  // namespace reprise
