// Attention that a model names as one op becomes the products and the Softmax that fuse_attention
// knows: one fast kernel then serves every spelling of it.
#include <cmath>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/match/attention_parts.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// Which keys a query sees by their positions: bounds of key - query, -1: none.
struct Window {
  bool causal;
  int64_t left, right;

  static Window Of(const Attributes& attributes) {
    return {attributes.Int("is_causal", 0) != 0, attributes.Int("left_window_size", -1),
            attributes.Int("right_window_size", -1)};
  }
  bool Sees(int64_t position, int64_t key) const {
    return (!causal || key <= position) && (left < 0 || key >= position - left) &&
           (right < 0 || key <= position + right);
  }
};

// Makes the mask where each row has its own count of keys, [batch], the last of which are the
// queries: bools [batch, 1, queries or 1, keys].
absl::StatusOr<ValueId> CountedMask(Graph& graph, ValueId counts, const Window& window,
                                    int64_t queries, int64_t keys) {
  const auto numbers = [&](const Shape& shape, int64_t first) {
    std::vector<int64_t> values(NumElements(shape));
    for (int64_t i = 0; i < NumElements(shape); ++i) values[i] = first + i;
    return graph.AddConstant("", Tensor::FromVector(DType::kInt64, shape, values));
  };
  const int64_t batch = (*ShapeOf(graph, counts))[0];
  ASSIGN_OR_RETURN(counts, AddReshape(graph, counts, {batch, 1, 1, 1}));
  const ValueId key = numbers({1, 1, 1, keys}, 0);
  ValueId keep = kNone;
  const auto hide_unless = [&](absl::string_view op, ValueId bound) -> absl::Status {
    ASSIGN_OR_RETURN(const ValueId seen, AddInferred(graph, op, {key, bound}));
    if (keep == kNone) {
      keep = seen;
    } else {
      ASSIGN_OR_RETURN(keep, AddInferred(graph, AndOp::kName, {keep, seen}));
    }
    return absl::OkStatus();
  };
  // Query i is key counts - queries + i.
  const auto query_plus = [&](int64_t shift) {
    return AddInferred(graph, AddOp::kName, {counts, numbers({1, 1, queries, 1}, shift - queries)});
  };
  const int64_t right = window.causal ? 0 : window.right;
  if (right >= 0) {
    ASSIGN_OR_RETURN(const ValueId last, query_plus(right));
    RETURN_IF_ERROR(hide_unless(LessOrEqualOp::kName, last));
  }
  if (right != 0) RETURN_IF_ERROR(hide_unless(LessOp::kName, counts));
  if (window.left >= 0) {
    ASSIGN_OR_RETURN(const ValueId first, query_plus(-window.left));
    RETURN_IF_ERROR(hide_unless(GreaterOrEqualOp::kName, first));
  }
  return keep;
}

// Returns whether a mask covers all keys; one that ends before they do hides the others.
bool IsWholeMask(const Graph& graph, ValueId mask, int64_t keys) {
  const bool known = graph.value(mask).dtype == DType::kBool || IsFloat32(graph, mask);
  if (!known || !ShapeOf(graph, mask).has_value()) return false;
  const Shape& shape = *ShapeOf(graph, mask);
  return shape.empty() || shape.back() == 1 || shape.back() == keys;
}

// Rewrites ONNX's Attention, unless it tells its scores; with sinks as well.
absl::StatusOr<ValueId> OnnxAttention(Graph& graph, const Node& node) {
  constexpr size_t kMask = 3, kPast = 4, kCounts = 6;
  const Attributes& attributes = node.attributes;
  for (size_t i : {0, 1, 2, 4, 5}) {
    if (node.input(i) == kNone ? i < kMask : !IsFloat32(graph, node.input(i))) return kNone;
  }
  if (IsUsed(graph, node.output(3))) return kNone;
  const bool joined = ShapeOf(graph, node.inputs[0])->size() == 3;
  const ValueId past_keys = node.input(kPast);
  const int64_t past = past_keys == kNone ? 0 : (*ShapeOf(graph, past_keys))[2];
  const Shape k_shape = *ShapeOf(graph, node.inputs[1]);
  const int64_t keys = past + k_shape[k_shape.size() - 2];
  const ValueId mask = node.input(kMask), counts = node.input(kCounts);
  if (mask != kNone && !IsWholeMask(graph, mask, keys)) return kNone;
  ValueId operands[3] = {node.inputs[0], node.inputs[1], node.inputs[2]};
  for (int i = 0; i < 3; ++i) {
    if (ShapeOf(graph, operands[i])->size() == 4) continue;
    const int64_t heads = attributes.Int(i == 0 ? "q_num_heads" : "kv_num_heads", 1);
    ASSIGN_OR_RETURN(operands[i], SplitHeads(graph, operands[i], heads));
  }
  const Shape q = *ShapeOf(graph, operands[0]);
  ValueId present[3] = {};
  for (int i : {1, 2}) {
    ASSIGN_OR_RETURN(present[i], BehindPast(graph, node.input(kPast + i - 1), operands[i]));
    ASSIGN_OR_RETURN(operands[i], RepeatHeads(graph, present[i], q[1]));
  }
  const float scale = attributes.Float("scale", 1 / std::sqrt(static_cast<float>(q[3])));
  ASSIGN_OR_RETURN(ValueId scores, Scores(graph, operands[0], operands[1], scale));
  if (const float cap = attributes.Float("softcap", 0); cap > 0) {
    const ValueId most = graph.AddConstant("", Tensor::FloatScalar(cap));
    ASSIGN_OR_RETURN(scores, AddInferred(graph, DivOp::kName, {scores, most}));
    ASSIGN_OR_RETURN(scores, AddInferred(graph, TanhOp::kName, {scores}));
    ASSIGN_OR_RETURN(scores, AddInferred(graph, MulOp::kName, {scores, most}));
  }
  if (mask != kNone && graph.value(mask).dtype == DType::kBool) {
    ASSIGN_OR_RETURN(scores, Kept(graph, mask, scores, kHidden));
  } else if (mask != kNone) {
    ASSIGN_OR_RETURN(scores, AddInferred(graph, AddOp::kName, {scores, mask}));
  }
  const Window window = Window::Of(attributes);
  ValueId seen = kNone;
  if (counts != kNone) {
    ASSIGN_OR_RETURN(seen, CountedMask(graph, counts, window, q[2], keys));
  } else {
    seen = PositionMask(graph, q[2], keys,
                        [&](int64_t at, int64_t key) { return window.Sees(past + at, key); });
  }
  if (seen != kNone) {
    ASSIGN_OR_RETURN(scores, Kept(graph, seen, scores, kHidden));
  }
  const ValueId sinks = node.input(SinkAttentionOp::kSinks);
  const bool guard = sinks == kNone && (mask != kNone || seen != kNone);
  ASSIGN_OR_RETURN(const ValueId result,
                   Weigh(graph, scores, operands[2], guard, node.name, sinks));
  for (int i : {1, 2}) {
    if (IsUsed(graph, node.output(i))) graph.ReplaceAllUses(node.outputs[i], present[i]);
  }
  return joined ? JoinHeads(graph, result) : result;
}

// onnxruntime's MultiHeadAttention: query, key, value, bias?, padding mask?, attention bias?, past
// key and value?
absl::StatusOr<ValueId> MultiHeadAttention(Graph& graph, const Node& node) {
  constexpr size_t kBias = 3, kPadding = 4, kAdded = 5, kPast = 6;
  const Attributes& attributes = node.attributes;
  for (size_t i = 0; i < kBias; ++i) {
    if (node.input(i) == kNone || !IsFloat32(graph, node.input(i))) return kNone;
  }
  const int64_t heads = attributes.Int("num_heads", 1);
  const Shape q = *ShapeOf(graph, node.inputs[0]);
  const Shape k = *ShapeOf(graph, node.inputs[1]);
  const ValueId past_keys = node.input(kPast);
  const int64_t past = past_keys == kNone ? 0 : (*ShapeOf(graph, past_keys))[2];
  const int64_t keys = past + k[k.size() - 2];
  const float filter = attributes.Float("mask_filter_value", -10000);
  ValueId padding = kNone;
  if (node.input(kPadding) != kNone) {
    ASSIGN_OR_RETURN(padding,
                     PaddingMask(graph, node.input(kPadding), {q[0], heads, q[1], keys}, filter));
    if (padding == kNone) return kNone;
  }
  ValueId operands[3] = {node.inputs[0], node.inputs[1], node.inputs[2]};
  int64_t column = 0;
  for (int i = 0; i < 3; ++i) {
    const Shape shape = *ShapeOf(graph, operands[i]);
    if (node.input(kBias) != kNone) {
      const ValueId begin = graph.AddConstant("", Tensor::Int64s({column}));
      column += shape.back();
      const ValueId end = graph.AddConstant("", Tensor::Int64s({column}));
      ASSIGN_OR_RETURN(const ValueId bias,
                       AddInferred(graph, SliceOp::kName, {node.input(kBias), begin, end}));
      ASSIGN_OR_RETURN(operands[i], AddInferred(graph, AddOp::kName, {operands[i], bias}));
    }
    if (shape.size() == 3) {
      ASSIGN_OR_RETURN(operands[i], SplitHeads(graph, operands[i], heads));
    }
    if (i > 0) {
      ASSIGN_OR_RETURN(operands[i], BehindPast(graph, node.input(kPast + i - 1), operands[i]));
    }
  }
  float scale = attributes.Float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(q[2] / heads));
  ASSIGN_OR_RETURN(ValueId scores, Scores(graph, operands[0], operands[1], scale));
  for (const ValueId added : {padding, node.input(kAdded)}) {
    if (added == kNone) continue;
    ASSIGN_OR_RETURN(scores, AddInferred(graph, AddOp::kName, {scores, added}));
  }
  if (attributes.Int("unidirectional", 0) != 0) {
    ASSIGN_OR_RETURN(scores, MaskFuture(graph, scores, past, filter));
  }
  ASSIGN_OR_RETURN(const ValueId result,
                   Weigh(graph, scores, operands[2], /*guard=*/false, node.name));
  for (int i : {1, 2}) {
    if (IsUsed(graph, node.output(i))) graph.ReplaceAllUses(node.outputs[i], operands[i]);
  }
  return JoinHeads(graph, result);
}

}  // namespace

absl::StatusOr<ValueId> NamedAttentionRule(Graph& graph, NodeId id) {
  const std::string& op = graph.node(id).op;
  const bool onnx = op == OnnxAttentionOp::kName || op == SinkAttentionOp::kName;
  if (!onnx && op != MultiHeadAttentionOp::kName) return kNone;
  ASSIGN_OR_RETURN(const bool fits, HasFittingOperands(graph, id));
  if (!fits) return kNone;
  const Node copy = graph.node(id);  // The rule adds nodes, which moves the others.
  return onnx ? OnnxAttention(graph, copy) : MultiHeadAttention(graph, copy);
}

}  // namespace reprise
