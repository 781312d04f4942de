// x * cosine + turned * sine, where `turned` has the second half of x's last dim, negated, before
// the first, becomes reprise.Rotary.
//
// Exporters rotate heads in the layout [batch, heads, rows, size]. Where those come from tokens,
// the tokens are rotated, and rearranged after it: then attention finds q and k as it finds them
// without rotary positions, and the rotation of each token depends on its own position alone.
#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/rotary_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/head_source.h"
#include "runtime/shapes/size.h"

namespace reprise {
namespace {

struct RotaryPattern {
  ValueId x;
  ValueId cosine, sine;
};

// `value` is elements [begin, begin + size) of the last dim of another value, which is returned;
// else kNone.
ValueId PieceOf(const Graph& graph, ValueId value, int64_t begin, int64_t size) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  const ValueId x = node.input(0);
  if (x == kNone || !IsFloat32(graph, x) || ShapeOf(graph, x)->empty()) return kNone;
  const int64_t rank = static_cast<int64_t>(ShapeOf(graph, x)->size());
  const int64_t whole = ShapeOf(graph, x)->back();
  Shape expected = *ShapeOf(graph, x);
  expected.back() = size;
  if (!HasShape(graph, value, expected)) return kNone;
  if (node.op == SplitOp::kName) {
    const int64_t axis = ConcatOp::From(node.attributes).axis;
    if (axis != -1 && axis != rank - 1) return kNone;
    int64_t at = 0;
    for (ValueId output : node.outputs) {
      if (output == kNone) return kNone;  // Its size is not known here.
      if (output == value) return at == begin ? x : kNone;
      at += ShapeOf(graph, output)->back();
    }
    return kNone;
  }
  if (node.op != SliceOp::kName) return kNone;
  // Its result has the shape of x except for the last dim, so that dim alone is cut, if all that
  // it names is that one; a step of 1 and the size leave only where it begins.
  const auto only = [&](size_t input, int64_t fallback) -> std::optional<int64_t> {
    if (node.input(input) == kNone) return fallback;
    const Tensor* values = KnownConstant(graph, node.input(input));
    if (values == nullptr || values->num_elements() != 1) return std::nullopt;
    const auto ints = values->ToInt64s();
    return ints.ok() ? std::optional<int64_t>(ints->front()) : std::nullopt;
  };
  const auto start = only(1, 0), axis = only(3, 0), step = only(4, 1);
  if (!start.has_value() || step != 1 || (axis != -1 && axis != rank - 1)) return kNone;
  return (*start < 0 ? *start + whole : *start) == begin ? x : kNone;
}

// Returns the x that `value` is -x.
ValueId NegatedBy(const Graph& graph, ValueId value) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  if (node.op == NegOp::kName) return node.inputs[0];
  if (node.op != MulOp::kName) return kNone;
  for (int side = 0; side < 2; ++side) {
    const auto factor = KnownScalar(graph, node.inputs[side]);
    if (factor == -1.0 && SameShape(graph, node.inputs[1 - side], value)) {
      return node.inputs[1 - side];
    }
  }
  return kNone;
}

// Returns the x that `value` is the turned halves of.
ValueId TurnedFrom(const Graph& graph, ValueId value) {
  const Node* concat = graph.ProducerIf(value, ConcatOp::kName);
  if (concat == nullptr || concat->inputs.size() != 2 || !IsFloat32(graph, value)) return kNone;
  const Shape& shape = *ShapeOf(graph, value);
  const int64_t axis = ConcatOp::From(concat->attributes).axis;
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (rank == 0 || shape.back() % 2 != 0 || (axis != -1 && axis != rank - 1)) return kNone;
  const int64_t half = shape.back() / 2;
  const ValueId x = PieceOf(graph, concat->inputs[1], 0, half);
  const ValueId high = NegatedBy(graph, concat->inputs[0]);
  return x != kNone && high != kNone && PieceOf(graph, high, half, half) == x ? x : kNone;
}

// Tables as reprise.Rotary takes them for an x of `shape`.
bool AreTables(const Graph& graph, ValueId cosine, ValueId sine, const Shape& shape) {
  if (!IsFloat32(graph, cosine) || !SameShape(graph, cosine, sine)) return false;
  const Shape& table = *ShapeOf(graph, cosine);
  if (table.empty() || table.back() != shape.back()) return false;
  const auto both = BroadcastShapes(table, shape);
  return both.ok() && *both == shape;
}

std::optional<RotaryPattern> MatchRotary(const Graph& graph, const Node& add) {
  if (add.op != AddOp::kName || !IsFloat32(graph, add.outputs[0])) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const Node* plain = graph.ProducerIf(add.inputs[side], MulOp::kName);
    const Node* turned = graph.ProducerIf(add.inputs[1 - side], MulOp::kName);
    if (plain == nullptr || turned == nullptr) return std::nullopt;
    for (int of_turned = 0; of_turned < 2; ++of_turned) {
      RotaryPattern found = {.x = TurnedFrom(graph, turned->inputs[of_turned]),
                             .sine = turned->inputs[1 - of_turned]};
      if (found.x == kNone) continue;
      found.cosine = OtherInput(*plain, found.x);
      if (found.cosine == kNone || !SameShape(graph, found.x, add.outputs[0])) continue;
      if (AreTables(graph, found.cosine, found.sine, *ShapeOf(graph, found.x))) return found;
    }
  }
  return std::nullopt;
}

// Returns a table for [batch, heads, rows, size] as one for [batch, rows, heads, size]: nullopt
// where that would move elements.
std::optional<Shape> TableOfTokens(const Shape& table) {
  Shape shape(4 - table.size(), 1);
  shape.insert(shape.end(), table.begin(), table.end());
  if (shape[1] != 1 && shape[2] != 1) return std::nullopt;
  std::swap(shape[1], shape[2]);
  return shape;
}

absl::StatusOr<ValueId> TurnTokens(Graph& graph, const RotaryPattern& pattern,
                                   const HeadSource& source, const HeadOperand& heads,
                                   const Shape& table, const std::string& name) {
  ASSIGN_OR_RETURN(ValueId tokens, AddTokens(graph, source, heads));
  ASSIGN_OR_RETURN(tokens,
                   AddReshape(graph, tokens, {heads.batch, heads.rows, heads.heads, heads.size}));
  ASSIGN_OR_RETURN(const ValueId cosine, AddReshape(graph, pattern.cosine, table));
  ASSIGN_OR_RETURN(const ValueId sine, AddReshape(graph, pattern.sine, table));
  ASSIGN_OR_RETURN(tokens, AddInferred(graph, RotaryOp::kName, {tokens, cosine, sine}, {}, name));
  return AddInferred(graph, TransposeOp::kName, {tokens},
                     {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

absl::StatusOr<ValueId> Turn(Graph& graph, const RotaryPattern& pattern, const std::string& name) {
  const Shape x = *ShapeOf(graph, pattern.x);
  const std::optional<Shape> table =
      x.size() == 4 ? TableOfTokens(*ShapeOf(graph, pattern.cosine)) : std::nullopt;
  if (table.has_value() && NumElements(x) > 0) {
    const HeadOperand heads = {pattern.x, x[0], x[1], x[2], x[3], false, false};
    const std::vector<HeadSource> sources = FindHeadSources(graph, heads);
    if (!sources.empty()) {
      const HeadSource* plain = PlainHeadSource(sources, heads);
      const HeadSource& source = plain != nullptr ? *plain : sources.back();
      return TurnTokens(graph, pattern, source, heads, *table, name);
    }
  }
  return AddInferred(graph, RotaryOp::kName, {pattern.x, pattern.cosine, pattern.sine}, {}, name);
}

absl::StatusOr<bool> FuseRotaryAt(Graph& graph, NodeId id) {
  const std::optional<RotaryPattern> pattern = MatchRotary(graph, graph.node(id));
  if (!pattern.has_value()) return false;
  const std::string name = graph.node(id).name;
  ASSIGN_OR_RETURN(const ValueId turned, Turn(graph, *pattern, name));
  Replace(graph, graph.node(id).outputs[0], turned);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseRotary() { return PassOfNodes("fuse_rotary", FuseRotaryAt); }

}  // namespace reprise
