#include "runtime/passes/match/attention_match.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

constexpr int kMaxSteps = 10;

bool SameLastTwo(const Shape& a, const Shape& b) {
  return a.size() >= 2 && b.size() >= 2 && a.back() == b.back() &&
         a[a.size() - 2] == b[b.size() - 2];
}

// Returns [queries, heads] where `rows` [batch, queries * heads, keys] is `apart` with both as
// dims.
std::optional<std::pair<int64_t, int64_t>> QueriesAndHeads(const Shape& rows, const Shape& apart) {
  if (rows.size() != 3 || apart.size() != 4 || rows[0] != apart[0] || rows[2] != apart[3] ||
      rows[1] != apart[1] * apart[2] || SameLastTwo(rows, apart)) {
    return std::nullopt;
  }
  return std::pair{apart[1], apart[2]};
}

// Returns whether each head [.., rows, size] of `of` meets one of `many`, in its order; or the only
// head of each batch row meets all of them, as where queries share one head of keys.
bool FitsHeads(const Shape& many, const Shape& of) {
  if (many.size() != of.size() || many.size() < 2) return false;
  for (size_t i = 0; i + 2 < many.size(); ++i) {
    const bool shared = many.size() == 4 && i == 1 && of[i] == 1;
    if (many[i] != of[i] && !shared) return false;  // One of them would be repeated.
  }
  return true;
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
  if (!FitsHeads(q, k)) return false;
  pattern.scores_shape = scores;
  NoteHeads(scores, pattern);
  return true;
}

bool MatchScores(const Graph& graph, ValueId value, int steps, bool capped,
                 AttentionPattern& pattern);

// softcap * tanh(scores / softcap), `bent` being the value that is multiplied with `softcap`.
bool MatchCap(const Graph& graph, ValueId bent, double softcap, int steps,
              AttentionPattern& pattern) {
  const Node* node = graph.ProducerIf(bent, TanhOp::kName);
  if (node == nullptr || OnlyUser(graph, bent) == kNone || !(softcap > 0)) return false;
  AttentionPattern attempt = pattern;
  if (!MatchScores(graph, node->inputs[0], steps - 1, /*capped=*/true, attempt)) return false;
  attempt.scale *= softcap;  // Among the factors below is one over it.
  attempt.softcap = softcap;
  pattern = std::move(attempt);
  return true;
}

// Follows the Softmax's operand upwards to the product of q and k. `capped`: past a cap.
bool MatchScores(const Graph& graph, ValueId value, int steps, bool capped,
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
    const Shape& above = *ShapeOf(graph, node.inputs[0]);
    const auto apart = QueriesAndHeads(above, shape);
    if (!apart.has_value() && !SameLastTwo(shape, above)) return false;
    if (!MatchScores(graph, node.inputs[0], steps - 1, capped, pattern)) return false;
    if (apart.has_value()) {
      pattern.queries_and_heads = apart;
    } else {
      NoteHeads(shape, pattern);
    }
    return true;
  }
  if (node.op == MulOp::kName || node.op == DivOp::kName) {
    for (int side = 1; side >= (node.op == MulOp::kName ? 0 : 1); --side) {
      const auto factor = KnownScalar(graph, node.inputs[side]);
      const ValueId scores = node.inputs[1 - side];
      if (!factor.has_value() || !SameShape(graph, scores, value)) continue;
      // A scale after the cap would be a scale of the capped scores.
      const bool may_cap = !capped && pattern.scale == 1 && node.op == MulOp::kName;
      if (may_cap && MatchCap(graph, scores, *factor, steps, pattern)) {
        return true;
      }
      AttentionPattern attempt = pattern;
      attempt.scale *= node.op == MulOp::kName ? *factor : 1 / *factor;
      if (!MatchScores(graph, scores, steps - 1, capped, attempt)) continue;
      pattern = std::move(attempt);
      return true;
    }
    return false;
  }
  if (capped || !(pattern.scale > 0)) return false;
  const auto try_mask = [&](ValueId scores, AttentionMask mask) {
    if (!SameShape(graph, scores, value)) return false;
    AttentionPattern attempt = pattern;
    mask.scores_shape = shape;
    mask.scale = pattern.scale;  // It is scaled with the scores.
    mask.fill *= pattern.scale;
    attempt.masks.push_back(std::move(mask));
    if (!MatchScores(graph, scores, steps - 1, capped, attempt)) return false;
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
  if (node.op == MaxOp::kName && node.inputs.size() == 2) {
    for (int side = 0; side < 2; ++side) {
      const auto fill = KnownScalar(graph, node.inputs[1 - side]);
      const bool low = fill.has_value() && *fill <= kLowFill;
      if (low &&
          try_mask(node.inputs[side], {.kind = AttentionMask::Kind::kFloor, .fill = *fill})) {
        return true;
      }
    }
  }
  if (node.op == WhereOp::kName) {
    for (int side = 1; side <= 2; ++side) {
      const auto fill = KnownScalar(graph, node.inputs[3 - side]);
      if (!fill.has_value() || !(*fill <= kLowFill)) continue;
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
      const Shape &above = *ShapeOf(graph, p), &below = *ShapeOf(graph, node.outputs[0]);
      const bool joins = pattern.queries_and_heads.has_value() &&
                         QueriesAndHeads(below, above) == pattern.queries_and_heads;
      if (!joins && !SameLastTwo(below, above)) return false;
      p = node.outputs[0];
      if (!joins) NoteHeads(below, pattern);
      continue;
    }
    if (node.op != MatMulOp::kName || node.inputs[0] != p || !IsFloat32(graph, node.inputs[1])) {
      return false;
    }
    pattern.v = node.inputs[1];
    pattern.result = node.outputs[0];
    const Shape& probabilities = *ShapeOf(graph, p);
    const Shape& v = *ShapeOf(graph, pattern.v);
    return FitsHeads(probabilities, v);
  }
  return false;
}

// Returns the operand of a Softmax before its largest element in each row is taken from it, as
// torch's graphs do once more; `operand` itself where they do not.
ValueId BeforeShift(const Graph& graph, ValueId operand) {
  const Node* shift = graph.ProducerIf(operand, SubOp::kName);
  if (shift == nullptr || OnlyUser(graph, operand) == kNone) return operand;
  const ValueId scores = shift->inputs[0];
  const Node* largest = graph.ProducerIf(shift->inputs[1], ReduceMaxOp::kName);
  if (largest == nullptr || largest->inputs[0] != scores || graph.IsOutput(scores) ||
      graph.value(scores).users.size() != 2 || OnlyUser(graph, shift->inputs[1]) == kNone) {
    return operand;
  }
  Shape one = *ShapeOf(graph, scores);
  if (one.empty()) return operand;
  one.back() = 1;
  return HasShape(graph, shift->inputs[1], one) ? scores : operand;
}

// Returns whether `slice` gives its operand without the last column.
bool DropsLastColumn(const Graph& graph, const Node& slice) {
  using In = SliceOp;
  if (slice.op != In::kName) return false;
  Shape shape = *ShapeOf(graph, slice.inputs[In::kX]);
  if (shape.empty()) return false;
  --shape.back();
  if (!HasShape(graph, slice.outputs[0], shape)) return false;
  const auto all_are = [&](size_t input, int64_t number) {
    if (slice.input(input) == kNone) return true;
    const Tensor* known = KnownConstant(graph, slice.inputs[input]);
    if (known == nullptr) return false;
    const auto numbers = known->ToInt64s();
    return numbers.ok() && absl::c_all_of(*numbers, [&](int64_t one) { return one == number; });
  };
  return all_are(In::kStarts, 0) && all_are(In::kSteps, 1);
}

// Matches sinks: where the Softmax has one more column than there are keys, whose shares are
// dropped: notes that column as sinks, and moves `scores` and `shares` to the ones of the keys.
void MatchSinks(const Graph& graph, ValueId& scores, ValueId& shares, AttentionPattern& pattern) {
  const ValueId all = BeforeShift(graph, scores);
  const Node* joined = graph.ProducerIf(all, ConcatOp::kName);
  if (joined == nullptr || joined->inputs.size() != 2 || !IsFloat32(graph, joined->inputs[1])) {
    return;
  }
  const bool once = all != scores || OnlyUser(graph, all) != kNone;
  const Shape& column = *ShapeOf(graph, joined->inputs[1]);
  const int64_t axis = joined->attributes.Int("axis", 0);
  const auto rank = static_cast<int64_t>(column.size());
  const NodeId user = OnlyUser(graph, shares);
  if (!once || rank != 4 || column.back() != 1 || (axis != -1 && axis != rank - 1) ||
      user == kNone || !DropsLastColumn(graph, graph.node(user))) {
    return;
  }
  pattern.sinks = joined->inputs[1];
  scores = joined->inputs[0];
  shares = graph.node(user).outputs[0];
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
  ValueId scores = node.inputs[0], shares = node.outputs[0];
  MatchSinks(graph, scores, shares, pattern);
  if (!MatchScores(graph, scores, kMaxSteps, /*capped=*/false, pattern)) return std::nullopt;
  if (!MatchResult(graph, shares, pattern)) return std::nullopt;
  if (!std::isfinite(pattern.scale)) return std::nullopt;
  return pattern;
}

}  // namespace reprise
