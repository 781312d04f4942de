// Attention that a model names as one op becomes the products and the Softmax that fuse_attention
// knows: one fast kernel then serves every spelling of it.
#include <cmath>
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rewrite.h"
#include "runtime/passes/rules.h"

namespace reprise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool IsUsed(const Graph& graph, ValueId value) {
  return value != kNone && (!graph.value(value).users.empty() || graph.IsOutput(value));
}

bool OnlyFirstResultIsUsed(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (IsUsed(graph, node.outputs[i])) return false;
  }
  return true;
}

absl::StatusOr<ValueId> Transposed(Graph& graph, ValueId value, std::vector<int64_t> perm) {
  return AddInferred(graph, "Transpose", {value}, {{"perm", std::move(perm)}});
}

// [batch, rows, heads * size] as [batch, heads, rows, size].
absl::StatusOr<ValueId> SplitHeads(Graph& graph, ValueId value, int64_t heads) {
  const Shape shape = *ShapeOf(graph, value);
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, {shape[0], shape[1], heads, shape[2] / heads}));
  return Transposed(graph, value, {0, 2, 1, 3});
}

// [batch, heads, rows, size] as [batch, rows, heads * size].
absl::StatusOr<ValueId> JoinHeads(Graph& graph, ValueId value) {
  ASSIGN_OR_RETURN(value, Transposed(graph, value, {0, 2, 1, 3}));
  const Shape shape = *ShapeOf(graph, value);
  return AddReshape(graph, value, {shape[0], shape[1], shape[2] * shape[3]});
}

// Key or value heads that several query heads share, repeated for each.
absl::StatusOr<ValueId> RepeatHeads(Graph& graph, ValueId value, int64_t heads) {
  const Shape shape = *ShapeOf(graph, value);
  if (shape[1] == heads) return value;
  const int64_t times = heads / shape[1];
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, {shape[0], shape[1], 1, shape[2], shape[3]}));
  const ValueId wide =
      graph.AddConstant("", Tensor::Int64s({shape[0], shape[1], times, shape[2], shape[3]}));
  ASSIGN_OR_RETURN(value, AddInferred(graph, "Expand", {value, wide}));
  return AddReshape(graph, value, {shape[0], heads, shape[2], shape[3]});
}

// Calls `keep(query, key)` for the bools of a [queries, keys] constant; kNone where all are true.
template <typename Keep>
ValueId PositionMask(Graph& graph, int64_t queries, int64_t keys, Keep keep) {
  bool all = true;
  Tensor mask = Tensor::Make(DType::kBool, {queries, keys}, [&](void* data) {
    auto* kept = static_cast<uint8_t*>(data);
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = 0; k < keys; ++k) all &= (*kept++ = keep(q, k) ? 1 : 0) != 0;
    }
  });
  return all ? kNone : graph.AddConstant("", std::move(mask));
}

// The scores where `keep` is true, `fill` elsewhere.
absl::StatusOr<ValueId> Kept(Graph& graph, ValueId keep, ValueId scores, float fill) {
  const ValueId low = graph.AddConstant("", Tensor::FloatScalar(fill));
  return AddInferred(graph, "Where", {keep, scores, low});
}

// q k^T * scale of operands [batch, heads, rows, size].
absl::StatusOr<ValueId> Scores(Graph& graph, ValueId q, ValueId k, float scale) {
  ASSIGN_OR_RETURN(k, Transposed(graph, k, {0, 1, 3, 2}));
  ASSIGN_OR_RETURN(const ValueId scores, AddInferred(graph, "MatMul", {q, k}));
  const ValueId factor = graph.AddConstant("", Tensor::FloatScalar(scale));
  return AddInferred(graph, "Mul", {scores, factor});
}

absl::StatusOr<ValueId> Weigh(Graph& graph, ValueId scores, ValueId v, bool guard,
                              const std::string& name) {
  ASSIGN_OR_RETURN(ValueId shares,
                   AddInferred(graph, "Softmax", {scores}, {{"axis", int64_t{-1}}}, name));
  if (guard) {
    ASSIGN_OR_RETURN(const ValueId is_nan, AddInferred(graph, "IsNaN", {shares}));
    const ValueId zero = graph.AddConstant("", Tensor::FloatScalar(0));
    ASSIGN_OR_RETURN(shares, AddInferred(graph, "Where", {is_nan, zero, shares}));
  }
  return AddInferred(graph, "MatMul", {shares, v});
}

// The Attention of ONNX, unless it keeps a past, caps scores or tells them.
absl::StatusOr<ValueId> OnnxAttention(Graph& graph, const Node& node) {
  const Attributes& attributes = node.attributes;
  for (size_t i : {4, 5, 6}) {
    if (node.input(i) != kNone) return kNone;
  }
  for (size_t i : {0, 1, 2}) {
    if (!IsFloat32(graph, node.input(i))) return kNone;
  }
  if (!OnlyFirstResultIsUsed(graph, node) || attributes.Float("softcap", 0) != 0) return kNone;
  const bool joined = ShapeOf(graph, node.inputs[0])->size() == 3;
  ValueId operands[3] = {node.inputs[0], node.inputs[1], node.inputs[2]};
  for (int i = 0; i < 3; ++i) {
    if (ShapeOf(graph, operands[i])->size() == 4) continue;
    const int64_t heads = attributes.Int(i == 0 ? "q_num_heads" : "kv_num_heads", 1);
    ASSIGN_OR_RETURN(operands[i], SplitHeads(graph, operands[i], heads));
  }
  const Shape q = *ShapeOf(graph, operands[0]);
  const int64_t queries = q[2], keys = (*ShapeOf(graph, operands[1]))[2];
  const ValueId mask = node.input(3);
  if (mask != kNone) {
    const bool known = graph.value(mask).dtype == DType::kBool || IsFloat32(graph, mask);
    if (!known || !ShapeOf(graph, mask).has_value()) return kNone;
    const Shape& shape = *ShapeOf(graph, mask);
    // One that ends before the keys do hides the others.
    if (!shape.empty() && shape.back() != 1 && shape.back() != keys) return kNone;
  }
  for (int i : {1, 2}) {
    ASSIGN_OR_RETURN(operands[i], RepeatHeads(graph, operands[i], q[1]));
  }
  const float scale = attributes.Float("scale", 1 / std::sqrt(static_cast<float>(q[3])));
  ASSIGN_OR_RETURN(ValueId scores, Scores(graph, operands[0], operands[1], scale));
  if (mask != kNone && graph.value(mask).dtype == DType::kBool) {
    ASSIGN_OR_RETURN(scores, Kept(graph, mask, scores, -kInfinity));
  } else if (mask != kNone) {
    ASSIGN_OR_RETURN(scores, AddInferred(graph, "Add", {scores, mask}));
  }
  const bool causal = attributes.Int("is_causal", 0) != 0;
  const int64_t left = attributes.Int("left_window_size", -1);
  const int64_t right = attributes.Int("right_window_size", -1);
  const ValueId positions = PositionMask(graph, queries, keys, [&](int64_t at, int64_t key) {
    return (!causal || key <= at) && (left < 0 || key >= at - left) &&
           (right < 0 || key <= at + right);
  });
  if (positions != kNone) {
    ASSIGN_OR_RETURN(scores, Kept(graph, positions, scores, -kInfinity));
  }
  const bool guard = mask != kNone || positions != kNone;
  ASSIGN_OR_RETURN(const ValueId result, Weigh(graph, scores, operands[2], guard, node.name));
  return joined ? JoinHeads(graph, result) : result;
}

// An integer of the dtype of `value`, int32 or int64.
Tensor ScalarLike(const Graph& graph, ValueId value, int32_t number) {
  return graph.value(value).dtype == DType::kInt32
             ? Tensor::FromVector<int32_t>(DType::kInt32, {}, {number})
             : Tensor::Int64Scalar(number);
}

// onnxruntime's integer masks of attention as what is added to the scores; kNone for a form that
// has none.
absl::StatusOr<ValueId> PaddingMask(Graph& graph, ValueId mask, const Shape& scores, float filter) {
  if (!ShapeOf(graph, mask).has_value()) return kNone;
  const Shape shape = *ShapeOf(graph, mask);
  const int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  ValueId keep = kNone;
  if (shape == Shape{batch, keys} || shape == Shape{batch, queries, keys}) {
    const int64_t rows = shape.size() == 2 ? 1 : queries;
    ASSIGN_OR_RETURN(const ValueId wide, AddReshape(graph, mask, {batch, 1, rows, keys}));
    const ValueId zero = graph.AddConstant("", ScalarLike(graph, mask, 0));
    ASSIGN_OR_RETURN(keep, AddInferred(graph, "Greater", {wide, zero}));
  } else if (shape == Shape{batch} && graph.value(mask).dtype == DType::kInt32) {
    ASSIGN_OR_RETURN(const ValueId lengths, AddReshape(graph, mask, {batch, 1, 1, 1}));
    std::vector<int32_t> positions(keys);
    for (int64_t k = 0; k < keys; ++k) positions[k] = static_cast<int32_t>(k);
    const ValueId all =
        graph.AddConstant("", Tensor::FromVector(DType::kInt32, {1, 1, 1, keys}, positions));
    ASSIGN_OR_RETURN(keep, AddInferred(graph, "Less", {all, lengths}));
  } else {
    return kNone;
  }
  const ValueId nothing = graph.AddConstant("", Tensor::FloatScalar(0));
  return Kept(graph, keep, nothing, filter);
}

// x times the weights of onnxruntime's Attention, without their bias, or of its QAttention, whose
// operands are integers: input 3 and 4 are their scales, 6 and 7 their zero points.
absl::StatusOr<ValueId> Projection(Graph& graph, const Node& node, bool quantized) {
  if (!quantized) return AddInferred(graph, "MatMul", {node.inputs[0], node.inputs[1]});
  std::vector<ValueId> operands = {node.inputs[0], node.inputs[1], node.input(6), node.input(7)};
  while (operands.back() == kNone) operands.pop_back();
  ASSIGN_OR_RETURN(const ValueId sums, AddInferred(graph, "MatMulInteger", std::move(operands)));
  ASSIGN_OR_RETURN(const ValueId rows, AddCast(graph, sums, DType::kFloat32));
  ASSIGN_OR_RETURN(const ValueId scale,
                   AddInferred(graph, "Mul", {node.inputs[3], node.inputs[4]}));
  return AddInferred(graph, "Mul", {rows, scale});
}

// onnxruntime's Attention with its projection: x, weights, bias?, mask?, past?, attention_bias?;
// of QAttention the mask is input 5 and the past input 8.
absl::StatusOr<ValueId> ProjectedAttention(Graph& graph, const Node& node) {
  const Attributes& attributes = node.attributes;
  const bool quantized = node.op == "com.microsoft.QAttention";
  for (const size_t i : {0, 1}) {
    if (node.input(i) == kNone || !ShapeOf(graph, node.inputs[i]).has_value()) return kNone;
  }
  for (const size_t i : quantized ? std::vector<size_t>{3, 4} : std::vector<size_t>{0, 1}) {
    if (!IsFloat32(graph, node.input(i))) return kNone;
  }
  const ValueId past = node.input(quantized ? 8 : 4);
  const ValueId given_mask = node.input(quantized ? 5 : 3);
  const ValueId bias_of_scores = quantized ? kNone : node.input(5);
  if (past != kNone || (!quantized && node.inputs.size() > 6) ||
      !OnlyFirstResultIsUsed(graph, node) || attributes.Int("do_rotary", 0) != 0) {
    return kNone;
  }
  const Shape x = *ShapeOf(graph, node.inputs[0]);
  const int64_t columns = ShapeOf(graph, node.inputs[1])->back();
  const int64_t heads = attributes.Int("num_heads", 0);
  const std::vector<int64_t> widths =
      attributes.Ints("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  const float filter = attributes.Float("mask_filter_value", -10000);
  const Shape scores_shape = {x[0], heads, x[1], x[1]};
  ValueId mask = kNone;
  if (given_mask != kNone) {
    ASSIGN_OR_RETURN(mask, PaddingMask(graph, given_mask, scores_shape, filter));
    if (mask == kNone) return kNone;
  }
  ASSIGN_OR_RETURN(ValueId rows, Projection(graph, node, quantized));
  if (node.input(2) != kNone) {
    ASSIGN_OR_RETURN(rows, AddInferred(graph, "Add", {rows, node.inputs[2]}));
  }
  const ValueId cuts = graph.AddConstant("", Tensor::Int64s(widths));
  const NodeId split = graph.AddNode("Split", {rows, cuts}, {{"axis", int64_t{-1}}}, 3);
  RETURN_IF_ERROR(InferNode(graph, split));
  ValueId operands[3];
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(operands[i], SplitHeads(graph, graph.node(split).outputs[i], heads));
  }
  float scale = attributes.Float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(widths[0] / heads));
  ASSIGN_OR_RETURN(ValueId scores, Scores(graph, operands[0], operands[1], scale));
  for (const ValueId added : {mask, bias_of_scores}) {
    if (added == kNone) continue;
    ASSIGN_OR_RETURN(scores, AddInferred(graph, "Add", {scores, added}));
  }
  if (attributes.Int("unidirectional", 0) != 0) {
    const ValueId positions =
        PositionMask(graph, x[1], x[1], [](int64_t at, int64_t key) { return key <= at; });
    if (positions != kNone) {
      const ValueId nothing = graph.AddConstant("", Tensor::FloatScalar(0));
      ASSIGN_OR_RETURN(const ValueId future, Kept(graph, positions, nothing, filter));
      ASSIGN_OR_RETURN(scores, AddInferred(graph, "Add", {scores, future}));
    }
  }
  ASSIGN_OR_RETURN(const ValueId result,
                   Weigh(graph, scores, operands[2], /*guard=*/false, node.name));
  return JoinHeads(graph, result);
}

}  // namespace

absl::StatusOr<ValueId> NamedAttentionRule(Graph& graph, NodeId id) {
  const std::string& op = graph.node(id).op;
  if (op != "Attention" && op != "com.microsoft.Attention" && op != "com.microsoft.QAttention") {
    return kNone;
  }
  const Node copy = graph.node(id);  // The rule adds nodes, which moves the others.
  return op == "Attention" ? OnnxAttention(graph, copy) : ProjectedAttention(graph, copy);
}

// ids, segment ids?, tables of words, positions and segments?, gamma, beta, mask?, position ids? ->
// the norm, the count of each row's mask, the sum.
absl::StatusOr<ValueId> EmbeddingNormRule(Graph& graph, NodeId id) {
  if (graph.node(id).op != "com.microsoft.EmbedLayerNormalization") return kNone;
  const Node node = graph.node(id);
  for (size_t i : {2, 3}) {
    if (!IsFloat32(graph, node.input(i))) return kNone;
  }
  if (!ShapeOf(graph, node.inputs[0]).has_value()) return kNone;
  const int64_t length = (*ShapeOf(graph, node.inputs[0]))[1];
  ValueId positions = node.input(8);
  if (positions == kNone) {
    std::vector<int64_t> counted(length);
    for (int64_t i = 0; i < length; ++i) counted[i] = i;
    positions = graph.AddConstant("", Tensor::FromVector(DType::kInt64, {1, length}, counted));
  }
  const auto looked_up = [&](ValueId table, ValueId ids) {
    return AddInferred(graph, "Gather", {table, ids}, {{"axis", int64_t{0}}});
  };
  ASSIGN_OR_RETURN(ValueId sum, looked_up(node.inputs[2], node.inputs[0]));
  ASSIGN_OR_RETURN(const ValueId places, looked_up(node.inputs[3], positions));
  ASSIGN_OR_RETURN(sum, AddInferred(graph, "Add", {sum, places}));
  if (node.input(1) != kNone && node.input(4) != kNone) {
    ASSIGN_OR_RETURN(const ValueId segments, looked_up(node.inputs[4], node.inputs[1]));
    ASSIGN_OR_RETURN(sum, AddInferred(graph, "Add", {sum, segments}));
  }
  ASSIGN_OR_RETURN(
      const ValueId normalized,
      AddInferred(graph, "LayerNormalization", {sum, node.inputs[5], node.inputs[6]},
                  {{"axis", int64_t{-1}}, {"epsilon", node.attributes.Float("epsilon", 1e-12f)}},
                  node.name));
  if (IsUsed(graph, node.output(1))) {
    ValueId counts = kNone;
    if (node.input(7) == kNone) {
      const int64_t batch = (*ShapeOf(graph, node.inputs[0]))[0];
      counts = graph.AddConstant(
          "", Tensor::FromVector(DType::kInt32, {batch}, std::vector<int32_t>(batch, 0)));
    } else {
      const ValueId one = graph.AddConstant("", ScalarLike(graph, node.inputs[7], 1));
      const ValueId axis = graph.AddConstant("", Tensor::Int64s({1}));
      ASSIGN_OR_RETURN(counts, AddInferred(graph, "Equal", {node.inputs[7], one}));
      ASSIGN_OR_RETURN(counts, AddCast(graph, counts, DType::kInt32));
      ASSIGN_OR_RETURN(counts,
                       AddInferred(graph, "ReduceSum", {counts, axis}, {{"keepdims", int64_t{0}}}));
    }
    graph.ReplaceAllUses(node.outputs[1], counts);
  }
  if (IsUsed(graph, node.output(2))) graph.ReplaceAllUses(node.outputs[2], sum);
  return normalized;
}

}  // namespace reprise
