// RotaryEmbedding of ONNX and of onnxruntime becomes lookups in its caches and the products that
// fuse_rotary knows.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/reduce/rotary_op.h"
#include "runtime/passes/match/attention_parts.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// Elements [begin, end) of the last dim.
absl::StatusOr<ValueId> Columns(Graph& graph, ValueId x, int64_t begin, int64_t end) {
  if (begin == 0 && end == ShapeOf(graph, x)->back()) return x;
  const auto one = [&](int64_t value) { return graph.AddConstant("", Tensor::Int64s({value})); };
  return AddInferred(graph, SliceOp::kName, {x, one(begin), one(end), one(-1)});
}

absl::StatusOr<ValueId> Joined(Graph& graph, std::vector<ValueId> parts) {
  return AddInferred(graph, ConcatOp::kName, std::move(parts), {{"axis", int64_t{-1}}});
}

// a * c and b * d, added or subtracted by `op`.
absl::StatusOr<ValueId> Mixed(Graph& graph, ValueId a, ValueId c, absl::string_view op, ValueId b,
                              ValueId d) {
  ASSIGN_OR_RETURN(const ValueId first, AddInferred(graph, MulOp::kName, {a, c}));
  ASSIGN_OR_RETURN(const ValueId second, AddInferred(graph, MulOp::kName, {b, d}));
  return AddInferred(graph, op, {first, second});
}

// The rows of the caches for the positions of x, [batch or 1, length, half].
struct Caches {
  ValueId cosine, sine;
};

absl::StatusOr<Caches> LookUp(Graph& graph, Caches caches, ValueId ids, int64_t length,
                              const std::string& name) {
  if (ids == kNone) return caches;
  if (ShapeOf(graph, ids)->size() == 1) {  // where the first one is
    std::vector<int64_t> behind(length);
    for (int64_t i = 0; i < length; ++i) behind[i] = i;
    ASSIGN_OR_RETURN(ids, AddCast(graph, ids, DType::kInt64));
    const ValueId steps =
        graph.AddConstant("", Tensor::FromVector(DType::kInt64, {1, length}, behind));
    // Padding after a request may be beyond the caches: it gets their last row, unless the first
    // position is beyond them already.
    const int64_t rows = (*ShapeOf(graph, caches.cosine))[0];
    const ValueId last = graph.AddConstant("", Tensor::Int64s({rows - 1}));
    ASSIGN_OR_RETURN(const ValueId most, AddInferred(graph, MaxOp::kName, {ids, last}));
    ASSIGN_OR_RETURN(ids, AddInferred(graph, AddOp::kName, {ids, steps}));
    ASSIGN_OR_RETURN(ids, AddInferred(graph, MinOp::kName, {ids, most}));
  }
  ASSIGN_OR_RETURN(ids, AddRangeCheck(graph, ids, (*ShapeOf(graph, caches.cosine))[0]));
  for (ValueId* cache : {&caches.cosine, &caches.sine}) {
    ASSIGN_OR_RETURN(
        *cache, AddInferred(graph, GatherOp::kName, {*cache, ids}, {{"axis", int64_t{0}}}, name));
  }
  return caches;
}

// x [.., rotated] by tables [.., rotated / 2]: neighbours belong together.
absl::StatusOr<ValueId> TurnNeighbours(Graph& graph, ValueId x, const Caches& tables) {
  const Shape shape = *ShapeOf(graph, x);
  Shape pairs = shape, halves = shape, ones;
  halves.back() = shape.back() / 2;
  pairs.back() = halves.back();
  pairs.push_back(2);
  ones = halves;
  ones.push_back(1);
  ASSIGN_OR_RETURN(const ValueId paired, AddReshape(graph, x, pairs));
  ValueId side[2];
  for (int64_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const ValueId one, Columns(graph, paired, i, i + 1));
    ASSIGN_OR_RETURN(side[i], AddReshape(graph, one, halves));
  }
  ASSIGN_OR_RETURN(ValueId even,
                   Mixed(graph, side[0], tables.cosine, SubOp::kName, side[1], tables.sine));
  ASSIGN_OR_RETURN(ValueId odd,
                   Mixed(graph, side[0], tables.sine, AddOp::kName, side[1], tables.cosine));
  ASSIGN_OR_RETURN(even, AddReshape(graph, even, ones));
  ASSIGN_OR_RETURN(odd, AddReshape(graph, odd, ones));
  ASSIGN_OR_RETURN(const ValueId both, Joined(graph, {even, odd}));
  return AddReshape(graph, both, shape);
}

// Rotates halves where the first half belongs to the second.
absl::StatusOr<ValueId> TurnHalves(Graph& graph, ValueId x, const Caches& tables) {
  const int64_t size = ShapeOf(graph, x)->back();
  ASSIGN_OR_RETURN(const ValueId cosine, Joined(graph, {tables.cosine, tables.cosine}));
  ASSIGN_OR_RETURN(const ValueId sine, Joined(graph, {tables.sine, tables.sine}));
  ASSIGN_OR_RETURN(const ValueId first, Columns(graph, x, 0, size / 2));
  ASSIGN_OR_RETURN(const ValueId second, Columns(graph, x, size / 2, size));
  ASSIGN_OR_RETURN(const ValueId negative, AddInferred(graph, NegOp::kName, {second}));
  ASSIGN_OR_RETURN(const ValueId turned, Joined(graph, {negative, first}));
  return Mixed(graph, x, cosine, AddOp::kName, turned, sine);
}

}  // namespace

// X, cos_cache, sin_cache, position_ids?; onnxruntime's: input, position_ids, cos_cache, sin_cache
absl::StatusOr<ValueId> RotaryEmbeddingRule(Graph& graph, NodeId id) {
  const bool microsoft = graph.node(id).op == MicrosoftRotaryEmbeddingOp::kName;
  if (!microsoft && graph.node(id).op != RotaryEmbeddingOp::kName) return kNone;
  ASSIGN_OR_RETURN(const bool fits, HasFittingOperands(graph, id));
  if (!fits) return kNone;
  const Node node = graph.node(id);  // The rule adds nodes, which moves the others.
  const ValueId ids = microsoft ? node.input(1) : node.input(3);
  Caches caches = {node.input(microsoft ? 2 : 1), node.input(microsoft ? 3 : 2)};
  const ValueId x = node.input(0);
  for (const ValueId value : {x, caches.cosine, caches.sine}) {
    if (!IsFloat32(graph, value)) return kNone;
  }
  const float scale = node.attributes.Float("scale", 1);
  const Shape shape = *ShapeOf(graph, x);
  const int64_t half = ShapeOf(graph, caches.cosine)->back();
  const bool by_token = shape.size() == 3;
  if (scale != 1 || (!by_token && shape.size() != 4)) return kNone;
  ValueId heads = x;
  if (by_token) {
    const int64_t given = node.attributes.Int("num_heads", 0);
    const int64_t size = given > 0 ? shape[2] / given : 2 * half;
    if (size == 0) return kNone;
    ASSIGN_OR_RETURN(heads, AddReshape(graph, x, {shape[0], shape[1], shape[2] / size, size}));
  }
  const int64_t size = ShapeOf(graph, heads)->back(), length = by_token ? shape[1] : shape[2];
  ASSIGN_OR_RETURN(Caches tables, LookUp(graph, caches, ids, length, node.name));
  for (ValueId* table : {&tables.cosine, &tables.sine}) {
    const int64_t rows = (*ShapeOf(graph, *table))[0];
    ASSIGN_OR_RETURN(
        *table, AddReshape(graph, *table,
                           by_token ? Shape{rows, length, 1, half} : Shape{rows, 1, length, half}));
  }
  ASSIGN_OR_RETURN(const ValueId rotated, Columns(graph, heads, 0, 2 * half));
  ValueId result;
  if (node.attributes.Int("interleaved", 0) != 0) {
    ASSIGN_OR_RETURN(result, TurnNeighbours(graph, rotated, tables));
  } else {
    ASSIGN_OR_RETURN(result, TurnHalves(graph, rotated, tables));
  }
  if (2 * half < size) {
    ASSIGN_OR_RETURN(const ValueId others, Columns(graph, heads, 2 * half, size));
    ASSIGN_OR_RETURN(result, Joined(graph, {result, others}));
  }
  return by_token ? AddReshape(graph, result, shape) : result;
}

}  // namespace reprise
