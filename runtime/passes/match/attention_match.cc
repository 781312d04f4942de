#include "runtime/passes/match/attention_match.h"

#include <cmath>

#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

constexpr int kMaxSteps = 10;
// A float32 score below 1e23 added to this leaves it as it is.
constexpr double kLowestFill = -1e30;

bool SameLastTwo(const Shape& a, const Shape& b) {
  return a.size() >= 2 && b.size() >= 2 && a.back() == b.back() &&
         a[a.size() - 2] == b[b.size() - 2];
}

void NoteHeads(const Shape& shape, AttentionPattern& pattern) {
  if (shape.size() == 4) pattern.batch_and_heads = {shape[0], shape[1]};
}

bool MatchProduct(const Graph& graph, const Node& node, AttentionPattern& pattern) {
  if (node.op == FusedMatMulOp::kName) {
    if (FusedMatMulOp::From(node.attributes).trans_a ||
        node.attributes.Int("transBatchA", 0) != 0 || node.attributes.Int("transBatchB", 0) != 0) {
      return false;
    }
    pattern.k_rows = FusedMatMulOp::From(node.attributes).trans_b;
    pattern.scale *= FusedMatMulOp::From(node.attributes).alpha;
  } else if (node.op != MatMulOp::kName) {
    return false;
  }
  pattern.q = node.inputs[0];
  pattern.k = node.inputs[1];
  if (!IsFloat32(graph, pattern.q) || !IsFloat32(graph, pattern.k)) return false;
  const Shape& q = *ShapeOf(graph, pattern.q);
  const Shape& k = *ShapeOf(graph, pattern.k);
  const Shape& scores = *ShapeOf(graph, node.outputs[0]);
  if (q.size() != k.size() || q.size() < 2) return false;
  for (size_t i = 0; i + 2 < q.size(); ++i) {
    if (q[i] != k[i]) return false;  // One of them would be repeated.
  }
  pattern.scores_shape = scores;
  NoteHeads(scores, pattern);
  return true;
}

// Follows the Softmax's operand upwards to the product of q and k.
bool MatchScores(const Graph& graph, ValueId value, int steps, bool scaled,
                 AttentionPattern& pattern) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone || steps == 0 || OnlyUser(graph, value) == kNone ||
      !IsFloat32(graph, value)) {
    return false;
  }
  const Node& node = graph.node(producer);
  const Shape& shape = *ShapeOf(graph, value);
  if (MatchProduct(graph, node, pattern)) return true;
  if (node.op == ReshapeOp::kName) {
    if (!SameLastTwo(shape, *ShapeOf(graph, node.inputs[0]))) return false;
    if (!MatchScores(graph, node.inputs[0], steps - 1, scaled, pattern)) return false;
    NoteHeads(shape, pattern);
    return true;
  }
  if (node.op == MulOp::kName || node.op == DivOp::kName) {
    for (int side = 1; side >= (node.op == MulOp::kName ? 0 : 1); --side) {
      const auto factor = KnownScalar(graph, node.inputs[side]);
      const ValueId scores = node.inputs[1 - side];
      if (!factor.has_value() || !SameShape(graph, scores, value)) continue;
      AttentionPattern attempt = pattern;
      attempt.scale *= node.op == MulOp::kName ? *factor : 1 / *factor;
      if (!MatchScores(graph, scores, steps - 1, true, attempt)) continue;
      pattern = std::move(attempt);
      return true;
    }
    return false;
  }
  if (scaled) return false;  // A mask before the scale would be scaled with the scores.
  const auto try_mask = [&](ValueId scores, AttentionMask mask) {
    if (!SameShape(graph, scores, value)) return false;
    AttentionPattern attempt = pattern;
    mask.scores_shape = shape;
    attempt.masks.push_back(std::move(mask));
    if (!MatchScores(graph, scores, steps - 1, false, attempt)) return false;
    pattern = std::move(attempt);
    return true;
  };
  if (node.op == AddOp::kName || node.op == SubOp::kName) {
    const auto kind =
        node.op == AddOp::kName ? AttentionMask::Kind::kAdd : AttentionMask::Kind::kSub;
    if (try_mask(node.inputs[0], {.kind = kind, .value = node.inputs[1]})) return true;
    return node.op == AddOp::kName &&
           try_mask(node.inputs[1], {.kind = kind, .value = node.inputs[0]});
  }
  if (node.op == WhereOp::kName) {
    for (int side = 1; side <= 2; ++side) {
      const auto fill = KnownScalar(graph, node.inputs[3 - side]);
      if (!fill.has_value() || !(*fill <= kLowestFill)) continue;
      const auto kind = side == 1 ? AttentionMask::Kind::kKeep : AttentionMask::Kind::kReplace;
      if (try_mask(node.inputs[side], {.kind = kind, .value = node.inputs[0], .fill = *fill})) {
        return true;
      }
    }
  }
  return false;
}

// where(isnan(p), 0, p) around the probabilities p: its result, else kNone.
ValueId NanGuard(const Graph& graph, ValueId p) {
  const std::vector<NodeId>& users = graph.value(p).users;
  if (users.size() != 2 || graph.IsOutput(p)) return kNone;
  for (int i = 0; i < 2; ++i) {
    const Node& test = graph.node(users[i]);
    const Node& choice = graph.node(users[1 - i]);
    if (test.op != "IsNaN" || choice.op != WhereOp::kName) continue;
    if (choice.inputs[0] != test.outputs[0] || choice.inputs[2] != p ||
        OnlyUser(graph, test.outputs[0]) == kNone) {
      continue;
    }
    const auto fill = KnownScalar(graph, choice.inputs[1]);
    if (fill.has_value() && *fill == 0 && SameShape(graph, choice.outputs[0], p)) {
      return choice.outputs[0];
    }
  }
  return kNone;
}

// Follows the Softmax's result downwards to the product with v.
bool MatchResult(const Graph& graph, ValueId p, AttentionPattern& pattern) {
  for (int step = 0; step < kMaxSteps; ++step) {
    if (const ValueId guarded = NanGuard(graph, p); guarded != kNone) {
      pattern.nan_to_zero = true;
      p = guarded;
    }
    const NodeId user = OnlyUser(graph, p);
    if (user == kNone) return false;
    const Node& node = graph.node(user);
    if (node.op == ReshapeOp::kName) {
      if (!SameLastTwo(*ShapeOf(graph, node.outputs[0]), *ShapeOf(graph, p))) return false;
      p = node.outputs[0];
      NoteHeads(*ShapeOf(graph, p), pattern);
      continue;
    }
    if (node.op != MatMulOp::kName || node.inputs[0] != p || !IsFloat32(graph, node.inputs[1])) {
      return false;
    }
    pattern.v = node.inputs[1];
    pattern.result = node.outputs[0];
    const Shape& probabilities = *ShapeOf(graph, p);
    const Shape& v = *ShapeOf(graph, pattern.v);
    if (probabilities.size() != v.size()) return false;
    for (size_t i = 0; i + 2 < v.size(); ++i) {
      if (v[i] != probabilities[i]) return false;
    }
    return true;
  }
  return false;
}

}  // namespace

std::optional<AttentionPattern> MatchAttention(const Graph& graph, NodeId softmax) {
  const Node& node = graph.node(softmax);
  if (node.op != SoftmaxOp::kName || !IsFloat32(graph, node.outputs[0])) return std::nullopt;
  const Shape& shape = *ShapeOf(graph, node.outputs[0]);
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int64_t axis = SoftmaxOp::From(node.attributes).axis;
  if (rank < 2 || rank > 4 || (axis != -1 && axis != rank - 1)) return std::nullopt;
  AttentionPattern pattern;
  NoteHeads(shape, pattern);
  if (!MatchScores(graph, node.inputs[0], kMaxSteps, false, pattern)) return std::nullopt;
  if (!MatchResult(graph, node.outputs[0], pattern)) return std::nullopt;
  if (!std::isfinite(pattern.scale)) return std::nullopt;
  return pattern;
}

}  // namespace reprise
