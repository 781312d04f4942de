#include "runtime/passes/paged/heads_apart.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/decoder_inputs.h"
#include "runtime/passes/read/axes.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

struct FoldedCache {
  ValueId input = kNone;
  NodeId join = kNone;        // the Concat of the past and of new rows
  std::vector<NodeId> casts;  // nodes between cache and join, in order
  int64_t heads = 0;
  int64_t size = 0;        // elements of a head; of keys and values together
  bool rows_last = false;  // [.., size, past], else [.., past, size]
  NodeId parts = kNone;    // the Split of keys and values; kNone: it holds one of both
};

bool IsFloats(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// Returns the dim of rows of the ids, which are the first input of whole numbers with two dims.
const Dim* BatchOf(const Graph& graph) {
  for (const ValueId input : graph.inputs()) {
    const Value& value = graph.value(input);
    const bool whole = value.dtype == DType::kInt64 || value.dtype == DType::kInt32;
    if (whole && value.dims.size() == 2) return &value.dims[0];
  }
  return nullptr;
}

// Returns by how much `rows` is a multiple of the batch; 0: it is none.
int64_t MultipleOfBatch(const Graph& graph, const Dim& rows) {
  const Dim* const batch = BatchOf(graph);
  if (batch == nullptr) return 0;
  if (batch->is_constant()) {
    return rows.is_constant() && batch->size > 0 && rows.size % batch->size == 0
               ? rows.size / batch->size
               : 0;
  }
  if (rows.is_constant()) return 0;
  int64_t multiple = 0;
  for (const int64_t size : {1, 2, 3}) {
    const absl::StatusOr<int64_t> at = DimSize(rows, {{batch->symbol, size}});
    if (!at.ok()) return 0;
    if (size == 1) multiple = *at;
    if (*at != multiple * size) return 0;
  }
  return multiple;
}

// Finds the node that joins new rows to the past.
bool FindJoin(const Graph& graph, FoldedCache& cache) {
  ValueId past = cache.input;
  while (true) {
    NodeId cast = kNone;
    for (const NodeId user : graph.value(past).users) {
      const Node& node = graph.node(user);
      if (node.op == CastOp::kName) cast = user;
      if (node.op != ConcatOp::kName || node.inputs.size() != 2 || node.inputs[0] != past) {
        continue;
      }
      const int64_t axis = node.attributes.Int("axis", 0);
      if ((axis < 0 ? axis + 3 : axis) != (cache.rows_last ? 2 : 1)) continue;
      cache.join = user;
      return true;
    }
    if (cast == kNone) return false;
    cache.casts.push_back(cast);
    past = graph.node(cast).outputs[0];
  }
}

void FindParts(const Graph& graph, FoldedCache& cache) {
  if (cache.rows_last || cache.heads != 1 || cache.size % 2 != 0) return;
  for (const NodeId user : graph.value(graph.node(cache.join).outputs[0]).users) {
    const Node& node = graph.node(user);
    if (node.op != SplitOp::kName || node.outputs.size() != 2) continue;
    const int64_t axis = node.attributes.Int("axis", 0);
    if (axis != 2 && axis != -1) continue;
    if (const ValueId sizes = node.input(SplitOp::kSizes); sizes != kNone) {
      const Tensor* const known = KnownConstant(graph, sizes);
      if (known == nullptr) continue;
      const absl::StatusOr<std::vector<int64_t>> halves = known->ToInt64s();
      if (!halves.ok() || *halves != std::vector<int64_t>(2, cache.size / 2)) continue;
    }
    cache.parts = user;
  }
}

// Returns the inputs of `graph` that are caches of three dims; `heads` is 0 where the file does not
// say by how much their rows are a multiple of the batch.
std::vector<FoldedCache> FindFolded(const Graph& graph) {
  std::vector<FoldedCache> caches;
  for (const ValueId input : graph.inputs()) {
    const Value& value = graph.value(input);
    if (!IsFloats(value.dtype) || value.dims.size() != 3) continue;
    const Dim &middle = value.dims[1], &last = value.dims[2];
    if (middle.is_constant() == last.is_constant()) continue;
    FoldedCache cache = {.input = input, .rows_last = middle.is_constant()};
    cache.size = cache.rows_last ? middle.size : last.size;
    cache.heads = MultipleOfBatch(graph, value.dims[0]);
    if (!FindJoin(graph, cache)) continue;
    FindParts(graph, cache);
    caches.push_back(std::move(cache));
  }
  return caches;
}

bool AllHaveHeads(const std::vector<FoldedCache>& caches) {
  return absl::c_all_of(caches, [](const FoldedCache& cache) { return cache.heads > 0; });
}

// Reads the rows of all inputs off the branch of a merged file that takes a past: as long as a flag
// decides which branch is taken, no symbols of the file are merged.
void ReadRowsOfBranch(Graph& graph) {
  Graph taken = graph;
  std::vector<std::vector<Dim>> dims;
  for (const ValueId input : graph.inputs()) {
    if (graph.value(input).dtype != DType::kBool) {
      dims.push_back(graph.value(input).dims);
      continue;
    }
    const Shape one(graph.value(input).dims.size(), 1);
    taken.ReplaceWithConstant(input, NumbersAs(DType::kBool, one, {1}));
  }
  const MergedSymbols merged = MergeSymbols(taken, dims, [] { return true; });
  if (!merged.note.empty()) return;
  for (const ValueId input : graph.inputs()) {
    std::vector<Dim>& own = graph.value(input).dims;
    if (!own.empty() && graph.value(input).dtype != DType::kBool) {
      own[0] = merged.Apply(absl::MakeSpan(own).first(1))[0];
    }
  }
}

class HeadsApart {
 public:
  explicit HeadsApart(const Graph& symbolic) : graph_(symbolic) {}

  absl::StatusOr<std::optional<Graph>> TakeApart(const std::vector<FoldedCache>& caches) && {
    for (const FoldedCache& cache : caches) TakeApart(cache);
    if (!graph_.Compact()) return absl::InternalError("the decoder with heads apart has a cycle");
    return std::move(graph_);
  }

 private:
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes));
    added_.push_back(node);
    return graph_.node(node).outputs[0];
  }
  ValueId Ints(const std::vector<int64_t>& values) {
    return graph_.AddConstant("", Tensor::Int64s(values));
  }
  // Returns the size of dim `dim` of `value`, as a vector of one.
  ValueId SizeOf(ValueId value, int64_t dim) {
    return Add(SliceOp::kName,
               {Add(ShapeOp::kName, {value}), Ints({dim}), Ints({dim + 1}), Ints({0})});
  }
  ValueId Joined(std::vector<ValueId> inputs, int64_t axis) {
    return Add(ConcatOp::kName, std::move(inputs), {{"axis", axis}});
  }
  ValueId Swapped(ValueId value) {
    return Add(TransposeOp::kName, {value}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  }

  // Returns [batch * heads, rows, size] as [batch, heads, rows, size].
  ValueId Apart(ValueId value, int64_t heads, int64_t size) {
    return Add(ReshapeOp::kName,
               {value, Joined({Ints({-1, heads}), SizeOf(value, 1), Ints({size})}, 0)});
  }
  // Does the contrary.
  ValueId Folded(ValueId value, int64_t size) {
    return Add(ReshapeOp::kName, {value, Joined({Ints({-1}), SizeOf(value, 2), Ints({size})}, 0)});
  }

  // Moves the uses of `from` by nodes that were there before, and by outputs, to `to`.
  void MoveUses(ValueId from, ValueId to) {
    const std::vector<NodeId> users = graph_.value(from).users;
    for (const NodeId user : users) {
      if (absl::c_linear_search(added_, user)) continue;
      for (size_t i = 0; i < graph_.node(user).inputs.size(); ++i) {
        if (graph_.node(user).inputs[i] == from) graph_.SetInput(user, i, to);
      }
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i] == from) graph_.SetOutput(i, to);
    }
  }

  // A cache of four dims, and new rows after it.
  struct Part {
    ValueId past = kNone, all = kNone;  // both folded
  };
  Part TakePart(const FoldedCache& cache, ValueId past, ValueId rows, int64_t size) {
    Part part = {.past = Folded(past, size)};
    for (const NodeId cast : cache.casts) {
      past = Add(CastOp::kName, {past}, graph_.node(cast).attributes);
    }
    part.all = Folded(Joined({past, Apart(rows, cache.heads, size)}, 2), size);
    return part;
  }

  void TakeApart(const FoldedCache& cache) {
    const Value old = graph_.value(cache.input);  // A copy: adding values moves them.
    const Dim batch = *BatchOf(graph_), past = old.dims[cache.rows_last ? 2 : 1];
    const auto dims = [&](int64_t size) {
      return std::vector<Dim>{batch, {.size = cache.heads}, past, {.size = size}};
    };
    const ValueId result = graph_.node(cache.join).outputs[0];
    ValueId rows = graph_.node(cache.join).inputs[1];
    if (cache.rows_last) rows = Swapped(rows);
    Part whole;
    if (cache.parts == kNone) {
      graph_.value(cache.input).dims = dims(cache.size);
      whole = TakePart(cache, cache.input, rows, cache.size);
    } else {
      const int64_t size = cache.size / 2;
      Part parts[2];
      for (const int64_t half : {0, 1}) {
        const ValueId input = graph_.AddInput(absl::StrCat(old.name, half == 0 ? ".key" : ".value"),
                                              old.dtype, dims(size));
        const ValueId own =
            Add(SliceOp::kName, {rows, Ints({half * size}), Ints({(half + 1) * size}), Ints({2})});
        parts[half] = TakePart(cache, input, own, size);
        MoveUses(graph_.node(cache.parts).outputs[half], parts[half].all);
      }
      whole = {.past = Joined({parts[0].past, parts[1].past}, 2),
               .all = Joined({parts[0].all, parts[1].all}, 2)};
    }
    if (cache.rows_last) whole = {.past = Swapped(whole.past), .all = Swapped(whole.all)};
    MoveUses(result, whole.all);
    MoveUses(cache.input, whole.past);
    if (cache.parts != kNone) {
      graph_.ReplaceWithConstant(cache.input, Tensor::Make(old.dtype, {0}, [](void*) {}));
    }
  }

  Graph graph_;
  std::vector<NodeId> added_;
};

}  // namespace

absl::StatusOr<std::optional<Graph>> WithHeadsApart(const Graph& symbolic) {
  std::vector<FoldedCache> caches = FindFolded(symbolic);
  if (caches.empty()) return std::nullopt;
  if (AllHaveHeads(caches)) return HeadsApart(symbolic).TakeApart(caches);
  Graph read = symbolic;
  ReadRowsOfBranch(read);
  caches = FindFolded(read);
  if (!AllHaveHeads(caches)) return std::nullopt;
  return HeadsApart(read).TakeApart(caches);
}

}  // namespace reprise
