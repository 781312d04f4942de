// softmax(q k^T * scale + mask) v becomes reprise.Attention over token-major operands.
//
// attention_match finds the two products and the nodes between. Here q, k and v are followed
// upwards, through any moves of heads, to a [batch, sequence, heads * size] value; where there
// is none (rotary embeddings, key-value buffers) a Transpose makes one.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/passes/fuse/attention_masks.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/attention_match.h"
#include "runtime/passes/match/head_source.h"
#include "runtime/passes/match/strided_view.h"

namespace reprise {
namespace {

// batch, heads and sizes; nullopt when the shapes do not tell.
std::optional<AttentionSizes> AttentionSizesOf(const Graph& graph,
                                               const AttentionPattern& pattern) {
  const Shape& q = *ShapeOf(graph, pattern.q);
  const Shape& v = *ShapeOf(graph, pattern.v);
  const Shape& scores = pattern.scores_shape;
  const int64_t rank = static_cast<int64_t>(scores.size());
  AttentionSizes sizes = {
      .queries = scores[rank - 2], .keys = scores[rank - 1], .size = q.back(), .size_v = v.back()};
  const int64_t groups =
      NumElements(absl::Span<const int64_t>(scores).first(static_cast<size_t>(rank - 2)));
  if (v[v.size() - 2] != sizes.keys || NumElements(scores) == 0 || NumElements(v) == 0 ||
      NumElements(q) == 0) {
    return std::nullopt;
  }
  if (pattern.queries_and_heads.has_value()) {
    sizes.batch = groups;
    std::tie(sizes.queries, sizes.heads) = *pattern.queries_and_heads;
    return sizes;
  }
  if (pattern.batch_and_heads.has_value()) {
    sizes.batch = pattern.batch_and_heads->first;
    sizes.heads = pattern.batch_and_heads->second;
    if (sizes.batch * sizes.heads != groups) return std::nullopt;
    return sizes;
  }
  // Three dims: the heads show where q comes from [batch, queries, heads * size]; otherwise each
  // group is a batch row of one head.
  ValueId value = pattern.q;
  for (int step = 0; step < kMaxHeadSteps; ++step) {
    const Shape& shape = *ShapeOf(graph, value);
    if (shape.size() == 3 && shape[1] == sizes.queries && groups % shape[0] == 0) {
      sizes.batch = shape[0];
      sizes.heads = groups / shape[0];
      const HeadOperand q_operand = {pattern.q,  sizes.batch, sizes.heads, sizes.queries,
                                     sizes.size, false,       true};
      if (sizes.heads > 1 &&
          PlainHeadSource(FindHeadSources(graph, q_operand), q_operand) != nullptr) {
        return sizes;
      }
    }
    double scale;
    if (StepToHeads(graph, value, true, &value, &scale) == kNone) break;
  }
  sizes.batch = groups;
  sizes.heads = 1;
  return sizes;
}

// Heads before each was repeated `times` times side by side, as grouped queries need them.
struct RepeatedHeads {
  ValueId value;  // the elements of [batch, heads / times, rows, size]
  int64_t times;
  double scale;  // the scale of the products between it and the operand
};

// Returns the heads that `operand` repeats; nullopt where it repeats nothing.
std::optional<RepeatedHeads> MatchRepeat(const Graph& graph, const HeadOperand& operand) {
  bool swapped = operand.swapped;
  ValueId value = operand.value;
  double scale = 1;
  for (int step = 0; step < kMaxHeadSteps; ++step) {
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return std::nullopt;
    const Node& node = graph.node(producer);
    const Shape& shape = *ShapeOf(graph, value);
    if (node.op == MulOp::kName || node.op == DivOp::kName) {
      double factor = 1;
      if (StepToHeads(graph, value, operand.scalable, &value, &factor) == kNone) {
        return std::nullopt;
      }
      scale *= factor;
      continue;
    }
    value = node.input(0);
    if (node.op == ReshapeOp::kName) continue;
    if (node.op == TransposeOp::kName && swapped) {
      std::vector<int64_t> perm = node.attributes.Ints("perm");
      if (perm.size() < 2 || shape.back() != operand.rows ||
          shape[shape.size() - 2] != operand.size) {
        return std::nullopt;
      }
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      if (!std::is_sorted(perm.begin(), perm.end())) return std::nullopt;
      swapped = false;
      continue;
    }
    if (node.op != ExpandOp::kName || swapped || shape.size() != 5) return std::nullopt;
    const int64_t times = shape[2];
    const Shape wide = {operand.batch, shape[1], times, operand.rows, operand.size};
    const Shape narrow = {operand.batch, shape[1], 1, operand.rows, operand.size};
    if (shape != wide || shape[1] * times != operand.heads || !HasShape(graph, value, narrow) ||
        !IsFloat32(graph, value)) {
      return std::nullopt;
    }
    return RepeatedHeads{value, times, scale};
  }
  return std::nullopt;
}

// [batch, rows, heads * size] with each head `times` times side by side.
absl::StatusOr<ValueId> RepeatInTokens(Graph& graph, ValueId value, const HeadOperand& group,
                                       int64_t times) {
  ASSIGN_OR_RETURN(value,
                   AddReshape(graph, value, {group.batch, group.rows, group.heads, 1, group.size}));
  const ValueId wide = graph.AddConstant(
      "", Tensor::Int64s({group.batch, group.rows, group.heads, times, group.size}));
  ASSIGN_OR_RETURN(value, AddInferred(graph, ExpandOp::kName, {value, wide}));
  return AddReshape(graph, value, {group.batch, group.rows, group.heads * times * group.size});
}

// [batch, rows, heads * size] of an operand; a Transpose where no source has it.
absl::StatusOr<ValueId> TokenMajor(Graph& graph, const HeadOperand& operand,
                                   const std::vector<HeadSource>& sources, double& scale) {
  const Shape tokens = {operand.batch, operand.rows, operand.heads * operand.size};
  if (const HeadSource* source = PlainHeadSource(sources, operand); source != nullptr) {
    scale *= source->scale;
    return AddTokens(graph, *source, operand);
  }
  if (const auto repeated = MatchRepeat(graph, operand); repeated.has_value()) {
    scale *= repeated->scale;
    HeadOperand group = operand;
    group.value = repeated->value;
    group.heads = operand.heads / repeated->times;
    group.swapped = false;
    ASSIGN_OR_RETURN(ValueId value, TokenMajor(graph, group, FindHeadSources(graph, group), scale));
    return RepeatInTokens(graph, value, group, repeated->times);
  }
  if (!sources.empty()) {
    scale *= sources.back().scale;
    return AddTokens(graph, sources.back(), operand);
  }
  ValueId value = operand.value;
  // A scale right before the product is one on the scores.
  for (int step = 0; step < kMaxHeadSteps && operand.scalable; ++step) {
    ValueId above = kNone;
    double factor = 1;
    const NodeId node = StepToHeads(graph, value, true, &above, &factor);
    if (node == kNone ||
        (graph.node(node).op != MulOp::kName && graph.node(node).op != DivOp::kName))
      break;
    scale *= factor;
    value = above;
  }
  const Shape heads = operand.swapped
                          ? Shape{operand.batch, operand.heads, operand.size, operand.rows}
                          : Shape{operand.batch, operand.heads, operand.rows, operand.size};
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, heads));
  const std::vector<int64_t> perm =
      operand.swapped ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 2, 1, 3};
  ASSIGN_OR_RETURN(value, AddInferred(graph, TransposeOp::kName, {value}, {{"perm", perm}}));
  return AddReshape(graph, value, tokens);
}

// Puts the [batch, queries, heads * size_v] attention in the place of the pattern's result, or of
// the value below it where the heads are back in their tokens.
absl::Status ReplaceResult(Graph& graph, const AttentionPattern& pattern,
                           const AttentionSizes& sizes, ValueId attention) {
  const int64_t width = sizes.heads * sizes.size_v;
  if (pattern.queries_and_heads.has_value()) {
    const Shape rows = *ShapeOf(graph, pattern.result);
    ASSIGN_OR_RETURN(const ValueId result, AddReshape(graph, attention, rows));
    Replace(graph, pattern.result, result);
    return absl::OkStatus();
  }
  std::optional<StridedView> view = StridedView::Strided({{sizes.batch, sizes.queries * width},
                                                          {sizes.heads, sizes.size_v},
                                                          {sizes.queries, width},
                                                          {sizes.size_v, 1}})
                                        .Reshaped(*ShapeOf(graph, pattern.result));
  REPRISE_CHECK(view.has_value());
  ValueId value = pattern.result;
  ValueId dense = view->IsDense() ? value : kNone;
  for (int step = 0; step < kMaxHeadSteps; ++step) {
    const NodeId user = OnlyUser(graph, value);
    if (user == kNone) break;
    const Node& node = graph.node(user);
    if ((node.op != ReshapeOp::kName && node.op != TransposeOp::kName) || node.inputs[0] != value)
      break;
    view = view->Through(graph, user, node.outputs[0]);
    if (!view.has_value()) break;
    value = node.outputs[0];
    if (view->IsDense()) dense = value;
  }
  ValueId replacement = attention;
  if (dense == kNone) {
    dense = pattern.result;
    ASSIGN_OR_RETURN(
        replacement,
        AddReshape(graph, attention, {sizes.batch, sizes.queries, sizes.heads, sizes.size_v}));
    ASSIGN_OR_RETURN(replacement, AddInferred(graph, TransposeOp::kName, {replacement},
                                              {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  }
  const Shape shape = *ShapeOf(graph, dense);
  ASSIGN_OR_RETURN(replacement, AddReshape(graph, replacement, shape));
  Replace(graph, dense, replacement);
  return absl::OkStatus();
}

// Returns the furthest value of rows [q, k, v] that all three operands are cut from; kNone when
// there is none.
ValueId PackedSource(const std::vector<HeadSource>& q, const std::vector<HeadSource>& k,
                     const std::vector<HeadSource>& v, const AttentionSizes& sizes, double* scale) {
  const int64_t width = sizes.heads * sizes.size;
  if (sizes.size != sizes.size_v || sizes.queries != sizes.keys) return kNone;
  for (auto a = q.rbegin(); a != q.rend(); ++a) {
    if (a->width != 3 * width || a->offset != 0) continue;
    for (const HeadSource& b : k) {
      if (b.value != a->value || b.offset != width) continue;
      for (const HeadSource& c : v) {
        if (c.value != a->value || c.offset != 2 * width) continue;
        *scale *= a->scale * b.scale;
        return a->value;
      }
    }
  }
  return kNone;
}

// Returns the weight [.., heads, 1, 1] that a weight of the shape `column` repeats; null: none, or
// another.
ParameterExprPtr BeforeExpand(ParameterExprPtr weight, const Shape& column) {
  const auto has_one_a_head = [&](const Shape& shape) {
    return NumElements(shape) == column[1] && shape.size() >= 3 &&
           shape[shape.size() - 3] == column[1];
  };
  while (weight != nullptr && !has_one_a_head(weight->shape())) {
    if (weight->op() != ExpandOp::kName && weight->op() != CastOp::kName) return nullptr;
    weight = weight->inputs()[0];
  }
  return weight;
}

// Returns the numbers [heads] that the weight `column` [batch, heads, queries, 1] repeats; kNone
// where it is not the same for all queries, or no weight.
absl::StatusOr<ValueId> SinksOf(Graph& graph, ValueId column) {
  const Shape shape = *ShapeOf(graph, column);
  const int64_t batch = shape[0], heads = shape[1], queries = shape[2];
  if (const Node* expand = graph.ProducerIf(column, ExpandOp::kName); expand != nullptr) {
    const ValueId narrow = expand->inputs[0];
    const Shape& from = *ShapeOf(graph, narrow);
    if (!IsWeight(graph, narrow) || NumElements(from) != heads || from.size() < 3 ||
        from[from.size() - 3] != heads) {
      return kNone;
    }
    return AddReshape(graph, narrow, {heads});
  }
  if (const Tensor* known = KnownConstant(graph, column); known != nullptr) {
    const auto numbers = known->span<float>();
    std::vector<float> sinks;
    for (int64_t h = 0; h < heads; ++h) sinks.push_back(numbers[h * queries]);
    for (int64_t i = 0; i < batch * heads * queries; ++i) {
      if (numbers[i] != sinks[i / queries % heads]) return kNone;
    }
    return graph.AddConstant("", Tensor::FromVector(DType::kFloat32, {heads}, sinks));
  }
  if (!IsParameter(graph, column)) return kNone;
  const ParameterExprPtr sinks = BeforeExpand(graph.value(column).parameter, shape);
  if (sinks == nullptr) return kNone;
  ValueId value = AddExpression(graph, sinks);
  if (!IsFloat32(graph, value)) {
    ASSIGN_OR_RETURN(value, AddCast(graph, value, DType::kFloat32));
  }
  return AddReshape(graph, value, {heads});
}

// Returns whether `operand` is rows after the rows of a cache.
bool ReadsCache(const Graph& graph, ValueId operand) {
  for (int step = 0; step < kMaxHeadSteps; ++step) {
    const NodeId producer = ProducerOf(graph, operand);
    if (producer == kNone || graph.node(producer).inputs.empty()) return false;
    if (graph.node(producer).op == CachedRowsOp::kName) return true;
    operand = graph.node(producer).inputs[0];
  }
  return false;
}

// Attention over pages has sinks and caps, and heads that share keys; other kernels have none, and
// are slower than the pieces.
// A token of a decoder sees itself, so that a low fill is as good as the lowest there; elsewhere a
// query may see nothing but keys that are hidden, and its scores tell these apart.
bool HasKernel(const Graph& graph, const AttentionPattern& pattern) {
  const bool fills = absl::c_all_of(pattern.masks, [](const AttentionMask& mask) {
    return mask.kind == AttentionMask::Kind::kAdd || mask.kind == AttentionMask::Kind::kSub ||
           mask.fill <= kLowestFill;
  });
  const bool plain = pattern.sinks == kNone && pattern.softcap == 0;
  if (fills && plain && !pattern.queries_and_heads.has_value()) return true;
  return ReadsCache(graph, pattern.k) && ReadsCache(graph, pattern.v);
}

// Notes that the queries of one head are the heads of one query, where they are rows over a cache
// that all of them see alike: a step has one query of each row.
void TakeRowsForHeads(const Graph& graph, AttentionPattern& pattern, AttentionSizes& sizes) {
  if (sizes.heads != 1 || sizes.queries == 1 || pattern.queries_and_heads.has_value()) return;
  if (pattern.scores_shape.size() != 3) return;
  for (const AttentionMask& mask : pattern.masks) {
    if (mask.kind == AttentionMask::Kind::kFloor) continue;
    const std::optional<Shape>& shape = ShapeOf(graph, mask.value);
    const bool same = shape.has_value() && (shape->size() < 2 || (*shape)[shape->size() - 2] == 1);
    if (!same || mask.scores_shape.size() != 4) return;
  }
  if (!ReadsCache(graph, pattern.k) || !ReadsCache(graph, pattern.v)) return;
  sizes.heads = std::exchange(sizes.queries, 1);
  pattern.queries_and_heads = {sizes.queries, sizes.heads};
}

absl::Status RewriteAttention(Graph& graph, const AttentionPattern& pattern,
                              const AttentionSizes& sizes, ValueId sinks, const std::string& name) {
  const HeadOperand q = {pattern.q,  sizes.batch, sizes.heads, sizes.queries,
                         sizes.size, false,       true};
  // An operand that has the elements of one head is shared by all heads of queries.
  const auto heads_of = [&](ValueId operand, int64_t size) {
    return NumElements(*ShapeOf(graph, operand)) == sizes.batch * sizes.keys * size ? int64_t{1}
                                                                                    : sizes.heads;
  };
  const HeadOperand k = {pattern.k,  sizes.batch, heads_of(pattern.k, sizes.size),
                         sizes.keys, sizes.size,  !pattern.k_rows,
                         true};
  const HeadOperand v = {pattern.v,  sizes.batch,  heads_of(pattern.v, sizes.size_v),
                         sizes.keys, sizes.size_v, false,
                         false};
  const bool in_rows = pattern.queries_and_heads.has_value();
  const std::vector<HeadSource> q_sources =
      in_rows ? std::vector<HeadSource>() : FindHeadSources(graph, q);
  const std::vector<HeadSource> k_sources = FindHeadSources(graph, k);
  const std::vector<HeadSource> v_sources = FindHeadSources(graph, v);
  double scale = pattern.scale;
  std::vector<ValueId> inputs(3, kNone);
  const bool shared = k.heads != sizes.heads || v.heads != sizes.heads;
  const ValueId packed =
      shared ? kNone : PackedSource(q_sources, k_sources, v_sources, sizes, &scale);
  if (packed != kNone) {
    const int64_t width = 3 * sizes.heads * sizes.size;
    ASSIGN_OR_RETURN(inputs[0], AddReshape(graph, packed, {sizes.batch, sizes.queries, width}));
  } else {
    if (in_rows) {
      ASSIGN_OR_RETURN(inputs[0],
                       AddReshape(graph, pattern.q, {q.batch, q.rows, q.heads * q.size}));
    } else {
      ASSIGN_OR_RETURN(inputs[0], TokenMajor(graph, q, q_sources, scale));
    }
    ASSIGN_OR_RETURN(inputs[1], TokenMajor(graph, k, k_sources, scale));
    ASSIGN_OR_RETURN(inputs[2], TokenMajor(graph, v, v_sources, scale));
    for (const auto& [input, of] : {std::pair{1, &k}, std::pair{2, &v}}) {
      if (of->heads == sizes.heads) continue;
      ASSIGN_OR_RETURN(inputs[input], RepeatInTokens(graph, inputs[input], *of, sizes.heads));
    }
  }
  ASSIGN_OR_RETURN(const ValueId mask, CombineMasks(graph, pattern, sizes));
  inputs.insert(inputs.end(), {mask, sinks});
  while (inputs.back() == kNone) inputs.pop_back();
  Attributes attributes = {{"num_heads", sizes.heads},
                           {"scale", static_cast<float>(scale)},
                           {"nan_to_zero", int64_t{pattern.nan_to_zero}},
                           {"packed_qkv", int64_t{packed != kNone}}};
  if (pattern.softcap != 0) attributes.Set("softcap", static_cast<float>(pattern.softcap));
  ASSIGN_OR_RETURN(
      const ValueId attention,
      AddInferred(graph, AttentionOp::kName, std::move(inputs), std::move(attributes), name));
  return ReplaceResult(graph, pattern, sizes, attention);
}

absl::StatusOr<bool> FuseAttentionAt(Graph& graph, NodeId id) {
  if (graph.node(id).op != SoftmaxOp::kName) return false;
  std::optional<AttentionPattern> pattern = MatchAttention(graph, id);
  if (!pattern.has_value() || !HasKernel(graph, *pattern)) return false;
  std::optional<AttentionSizes> sizes = AttentionSizesOf(graph, *pattern);
  if (!sizes.has_value()) return false;
  TakeRowsForHeads(graph, *pattern, *sizes);
  if (!MasksFit(graph, *pattern, *sizes)) return false;
  ValueId sinks = kNone;
  if (pattern->sinks != kNone) {
    ASSIGN_OR_RETURN(sinks, SinksOf(graph, pattern->sinks));
    if (sinks == kNone || !HasShape(graph, sinks, {sizes->heads})) return false;
  }
  const std::string name = graph.node(id).name;  // Nodes move when others are added.
  RETURN_IF_ERROR(RewriteAttention(graph, *pattern, *sizes, sinks, name));
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseAttention() { return PassOfNodes("fuse_attention", FuseAttentionAt); }

}  // namespace reprise
