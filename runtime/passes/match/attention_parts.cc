#include "runtime/passes/match/attention_parts.h"

#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/softmax_op.h"

namespace reprise {
namespace {

absl::StatusOr<ValueId> Transposed(Graph& graph, ValueId value, std::vector<int64_t> perm) {
  return AddInferred(graph, TransposeOp::kName, {value}, {{"perm", std::move(perm)}});
}

}  // namespace

absl::StatusOr<bool> HasFittingOperands(Graph& graph, NodeId id) {
  for (const ValueId input : graph.node(id).inputs) {
    if (input != kNone && !ShapeOf(graph, input).has_value()) return false;
  }
  RETURN_IF_ERROR(InferNode(graph, id));
  return true;
}

bool IsUsed(const Graph& graph, ValueId value) {
  return value != kNone && (!graph.value(value).users.empty() || graph.IsOutput(value));
}

bool OnlyFirstResultIsUsed(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (IsUsed(graph, node.outputs[i])) return false;
  }
  return true;
}

absl::StatusOr<ValueId> SplitHeads(Graph& graph, ValueId value, int64_t heads) {
  const Shape shape = *ShapeOf(graph, value);
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, {shape[0], shape[1], heads, shape[2] / heads}));
  return Transposed(graph, value, {0, 2, 1, 3});
}

absl::StatusOr<ValueId> JoinHeads(Graph& graph, ValueId value) {
  ASSIGN_OR_RETURN(value, Transposed(graph, value, {0, 2, 1, 3}));
  const Shape shape = *ShapeOf(graph, value);
  return AddReshape(graph, value, {shape[0], shape[1], shape[2] * shape[3]});
}

absl::StatusOr<ValueId> RepeatHeads(Graph& graph, ValueId value, int64_t heads) {
  const Shape shape = *ShapeOf(graph, value);
  if (shape[1] == heads) return value;
  const int64_t times = heads / shape[1];
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, {shape[0], shape[1], 1, shape[2], shape[3]}));
  const ValueId wide =
      graph.AddConstant("", Tensor::Int64s({shape[0], shape[1], times, shape[2], shape[3]}));
  ASSIGN_OR_RETURN(value, AddInferred(graph, ExpandOp::kName, {value, wide}));
  return AddReshape(graph, value, {shape[0], heads, shape[2], shape[3]});
}

ValueId PositionMask(Graph& graph, int64_t queries, int64_t keys,
                     const std::function<bool(int64_t, int64_t)>& keep) {
  bool all = true;
  Tensor mask = Tensor::Make(DType::kBool, {queries, keys}, [&](void* data) {
    auto* kept = static_cast<uint8_t*>(data);
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = 0; k < keys; ++k) all &= (*kept++ = keep(q, k) ? 1 : 0) != 0;
    }
  });
  return all ? kNone : graph.AddConstant("", std::move(mask));
}

absl::StatusOr<ValueId> Kept(Graph& graph, ValueId keep, ValueId scores, float fill) {
  const ValueId low = graph.AddConstant("", Tensor::FloatScalar(fill));
  return AddInferred(graph, WhereOp::kName, {keep, scores, low});
}

absl::StatusOr<ValueId> Scores(Graph& graph, ValueId q, ValueId k, float scale) {
  ASSIGN_OR_RETURN(k, Transposed(graph, k, {0, 1, 3, 2}));
  ASSIGN_OR_RETURN(const ValueId scores, AddInferred(graph, MatMulOp::kName, {q, k}));
  const ValueId factor = graph.AddConstant("", Tensor::FloatScalar(scale));
  return AddInferred(graph, MulOp::kName, {scores, factor});
}

absl::StatusOr<ValueId> Weigh(Graph& graph, ValueId scores, ValueId v, bool guard,
                              const std::string& name, ValueId sinks) {
  const Shape shape = *ShapeOf(graph, scores);
  if (sinks != kNone) {
    // One more column, of which no share is taken.
    ASSIGN_OR_RETURN(ValueId column, AddReshape(graph, sinks, {1, shape[1], 1, 1}));
    const ValueId wide = graph.AddConstant("", Tensor::Int64s({shape[0], shape[1], shape[2], 1}));
    ASSIGN_OR_RETURN(column, AddInferred(graph, ExpandOp::kName, {column, wide}));
    ASSIGN_OR_RETURN(scores,
                     AddInferred(graph, ConcatOp::kName, {scores, column}, {{"axis", int64_t{3}}}));
  }
  ASSIGN_OR_RETURN(ValueId shares,
                   AddInferred(graph, SoftmaxOp::kName, {scores}, {{"axis", int64_t{-1}}}, name));
  if (sinks != kNone) {
    std::vector<ValueId> operands = {shares};
    for (const int64_t number : {int64_t{0}, shape[3], int64_t{3}}) {
      operands.push_back(graph.AddConstant("", Tensor::Int64s({number})));
    }
    ASSIGN_OR_RETURN(shares, AddInferred(graph, SliceOp::kName, std::move(operands)));
  }
  if (guard) {
    ASSIGN_OR_RETURN(const ValueId is_nan, AddInferred(graph, "IsNaN", {shares}));
    const ValueId zero = graph.AddConstant("", Tensor::FloatScalar(0));
    ASSIGN_OR_RETURN(shares, AddInferred(graph, WhereOp::kName, {is_nan, zero, shares}));
  }
  return AddInferred(graph, MatMulOp::kName, {shares, v});
}

absl::StatusOr<ValueId> MaskFuture(Graph& graph, ValueId scores, int64_t past, float filter) {
  const Shape shape = *ShapeOf(graph, scores);
  const ValueId seen = PositionMask(graph, shape[2], shape[3],
                                    [&](int64_t at, int64_t key) { return key <= past + at; });
  if (seen == kNone) return scores;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  // The lowest float absorbs any number that is added to it, unless that is nearly as low itself.
  constexpr float kSwallowed = -1e30f;
  if (filter < kSwallowed) return Kept(graph, seen, scores, kLowest);
  const ValueId nothing = graph.AddConstant("", Tensor::FloatScalar(0));
  ASSIGN_OR_RETURN(const ValueId future, Kept(graph, seen, nothing, kLowest));
  return AddInferred(graph, AddOp::kName, {scores, future});
}

absl::StatusOr<ValueId> BehindPast(Graph& graph, ValueId past, ValueId rows) {
  if (past == kNone) return rows;
  return AddInferred(graph, ConcatOp::kName, {past, rows}, {{"axis", int64_t{2}}});
}

Tensor ScalarLike(const Graph& graph, ValueId value, int32_t number) {
  return graph.value(value).dtype == DType::kInt32
             ? Tensor::FromVector<int32_t>(DType::kInt32, {}, {number})
             : Tensor::Int64Scalar(number);
}

absl::StatusOr<ValueId> PaddingMask(Graph& graph, ValueId mask, const Shape& scores, float filter) {
  if (!ShapeOf(graph, mask).has_value()) return kNone;
  const Shape shape = *ShapeOf(graph, mask);
  const int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  ValueId keep = kNone;
  if (shape == Shape{batch, keys} || shape == Shape{batch, queries, keys}) {
    const int64_t rows = shape.size() == 2 ? 1 : queries;
    ASSIGN_OR_RETURN(const ValueId wide, AddReshape(graph, mask, {batch, 1, rows, keys}));
    const ValueId zero = graph.AddConstant("", ScalarLike(graph, mask, 0));
    ASSIGN_OR_RETURN(keep, AddInferred(graph, GreaterOp::kName, {wide, zero}));
  } else if (shape == Shape{batch} && graph.value(mask).dtype == DType::kInt32) {
    ASSIGN_OR_RETURN(const ValueId lengths, AddReshape(graph, mask, {batch, 1, 1, 1}));
    std::vector<int32_t> positions(keys);
    for (int64_t k = 0; k < keys; ++k) positions[k] = static_cast<int32_t>(k);
    const ValueId all =
        graph.AddConstant("", Tensor::FromVector(DType::kInt32, {1, 1, 1, keys}, positions));
    ASSIGN_OR_RETURN(keep, AddInferred(graph, LessOp::kName, {all, lengths}));
  } else {
    return kNone;
  }
  const ValueId nothing = graph.AddConstant("", Tensor::FloatScalar(0));
  return Kept(graph, keep, nothing, filter);
}

}  // namespace reprise
