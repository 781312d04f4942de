// softmax(q k^T * scale + mask) v becomes reprise.Attention over token-major operands.
//
// attention_match finds the two products and what lies between. Here q, k and v are followed
// upwards, through whatever moves heads about, to a [batch, sequence, heads * size] value; where
// there is none (rotary embeddings, key-value buffers) a Transpose makes one.
#include <cmath>

#include "runtime/base/status_macros.h"
#include "runtime/passes/attention_match.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"
#include "runtime/passes/strided_view.h"

namespace reprise {
namespace {

constexpr int kMaxSteps = 16;

struct Sizes {
  int64_t batch, heads, queries, keys, size, size_v;
};

// A value above an operand that holds the operand's elements, [tokens, width] with the operand's
// columns at `offset`.
struct Source {
  ValueId value = kNone;
  int64_t width = 0;   // of a token's row; heads * size when it holds nothing else
  int64_t offset = 0;  // where the operand begins in a row
  double scale = 1;    // of the products between it and the operand
};

// One operand as attention reads it: [batch, heads, rows, size], or with the last two swapped.
struct Operand {
  ValueId value;
  int64_t batch, heads, rows, size;
  bool swapped;
  bool scalable;  // a scale on it is one on the scores
};

// The node above `value` that a source may be found behind, and the scale it applies.
NodeId StepUp(const Graph& graph, ValueId value, bool scalable, ValueId* above, double* scale) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  *scale = 1;
  *above = node.inputs.empty() ? kNone : node.inputs[0];
  if (node.op == "Reshape" || node.op == "Transpose" || node.op == "Gather" || node.op == "Split") {
    return *above != kNone && IsFloat32(graph, *above) ? producer : kNone;
  }
  if (!scalable || (node.op != "Mul" && node.op != "Div")) return kNone;
  for (int side = 1; side >= (node.op == "Mul" ? 0 : 1); --side) {
    const auto factor = KnownScalar(graph, node.inputs[side]);
    *above = node.inputs[1 - side];
    if (!factor.has_value() || !SameShape(graph, *above, value)) continue;
    *scale = node.op == "Mul" ? *factor : 1 / *factor;
    return producer;
  }
  return kNone;
}

// All sources of an operand, the nearest first.
std::vector<Source> FindSources(const Graph& graph, const Operand& operand) {
  std::vector<Source> sources;
  std::vector<std::pair<NodeId, ValueId>> path;  // from the operand upwards: node, its output
  ValueId value = operand.value;
  double scale = 1;
  for (int step = 0; step <= kMaxSteps; ++step) {
    const Shape& shape = *ShapeOf(graph, value);
    std::optional<StridedView> view = StridedView::Dense(shape);
    for (auto it = path.rbegin(); it != path.rend() && view.has_value(); ++it) {
      const std::string& op = graph.node(it->first).op;
      if (op == "Mul" || op == "Div") continue;
      view = view->Through(graph, it->first, it->second);
    }
    const int64_t tokens = operand.batch * operand.rows;
    const int64_t elements = NumElements(shape);
    if (view.has_value() && elements % tokens == 0) {
      const int64_t width = elements / tokens;
      const StridedView::Atom batch = {operand.batch, operand.rows * width};
      const StridedView::Atom head = {operand.heads, operand.size};
      const StridedView::Atom row = {operand.rows, width};
      const StridedView::Atom column = {operand.size, 1};
      const StridedView expected = operand.swapped
                                       ? StridedView::Strided({batch, head, column, row})
                                       : StridedView::Strided({batch, head, row, column});
      if (view->Merged() == expected.Merged() &&
          view->offset() + operand.heads * operand.size <= width) {
        sources.push_back({value, width, view->offset(), scale});
      }
    }
    ValueId above = kNone;
    double factor = 1;
    const NodeId node = StepUp(graph, value, operand.scalable, &above, &factor);
    if (node == kNone) break;
    path.emplace_back(node, value);
    scale *= factor;
    value = above;
  }
  return sources;
}

// The furthest source that holds nothing but the operand.
const Source* PlainSource(const std::vector<Source>& sources, const Operand& operand) {
  const Source* found = nullptr;
  for (const Source& source : sources) {
    if (source.width == operand.heads * operand.size) found = &source;
  }
  return found;
}

// batch, heads and sizes; nullopt when the shapes do not tell.
std::optional<Sizes> SizesOf(const Graph& graph, const AttentionPattern& pattern) {
  const Shape& q = *ShapeOf(graph, pattern.q);
  const Shape& v = *ShapeOf(graph, pattern.v);
  const Shape& scores = pattern.scores_shape;
  const int64_t rank = static_cast<int64_t>(scores.size());
  Sizes sizes = {
      .queries = scores[rank - 2], .keys = scores[rank - 1], .size = q.back(), .size_v = v.back()};
  const int64_t groups =
      NumElements(absl::Span<const int64_t>(scores).first(static_cast<size_t>(rank - 2)));
  if (v[v.size() - 2] != sizes.keys || NumElements(scores) == 0 || NumElements(v) == 0 ||
      NumElements(q) == 0) {
    return std::nullopt;
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
  for (int step = 0; step < kMaxSteps; ++step) {
    const Shape& shape = *ShapeOf(graph, value);
    if (shape.size() == 3 && shape[1] == sizes.queries && groups % shape[0] == 0) {
      sizes.batch = shape[0];
      sizes.heads = groups / shape[0];
      const Operand q_operand = {pattern.q,  sizes.batch, sizes.heads, sizes.queries,
                                 sizes.size, false,       true};
      if (sizes.heads > 1 && PlainSource(FindSources(graph, q_operand), q_operand) != nullptr) {
        return sizes;
      }
    }
    double scale;
    if (StepUp(graph, value, true, &value, &scale) == kNone) break;
  }
  sizes.batch = groups;
  sizes.heads = 1;
  return sizes;
}

// [batch, rows, heads * size] of an operand; a Transpose where no source has it.
absl::StatusOr<ValueId> TokenMajor(Graph& graph, const Operand& operand,
                                   const std::vector<Source>& sources, double& scale) {
  const Shape tokens = {operand.batch, operand.rows, operand.heads * operand.size};
  if (const Source* source = PlainSource(sources, operand); source != nullptr) {
    scale *= source->scale;
    return AddReshape(graph, source->value, tokens);
  }
  ValueId value = operand.value;
  // A scale right before the product is one on the scores.
  for (int step = 0; step < kMaxSteps && operand.scalable; ++step) {
    ValueId above = kNone;
    double factor = 1;
    const NodeId node = StepUp(graph, value, true, &above, &factor);
    if (node == kNone || (graph.node(node).op != "Mul" && graph.node(node).op != "Div")) break;
    scale *= factor;
    value = above;
  }
  const Shape heads = operand.swapped
                          ? Shape{operand.batch, operand.heads, operand.size, operand.rows}
                          : Shape{operand.batch, operand.heads, operand.rows, operand.size};
  ASSIGN_OR_RETURN(value, AddReshape(graph, value, heads));
  const std::vector<int64_t> perm =
      operand.swapped ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 2, 1, 3};
  ASSIGN_OR_RETURN(value, AddInferred(graph, "Transpose", {value}, {{"perm", perm}}));
  return AddReshape(graph, value, tokens);
}

// The shape in which a mask that meets scores of `mask.scores_shape` broadcasts to
// [batch, heads, queries, keys]; nullopt when there is none.
std::optional<Shape> MaskShape(const Graph& graph, const AttentionMask& mask, const Sizes& sizes) {
  const Shape scores = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  if (!ShapeOf(graph, mask.value).has_value()) return std::nullopt;
  const Shape& shape = *ShapeOf(graph, mask.value);
  if (shape.size() > mask.scores_shape.size()) return std::nullopt;
  if (mask.scores_shape == scores) return shape;
  if (mask.scores_shape.size() == 2) return shape;
  if (mask.scores_shape.size() != 3) return std::nullopt;
  if (shape.size() < 3 || shape[0] == 1) return shape;
  return Shape{sizes.batch, sizes.heads, shape[1], shape[2]};
}

bool MasksFit(const Graph& graph, const AttentionPattern& pattern, const Sizes& sizes) {
  for (const AttentionMask& mask : pattern.masks) {
    const bool chooses =
        mask.kind == AttentionMask::Kind::kKeep || mask.kind == AttentionMask::Kind::kReplace;
    if (graph.value(mask.value).dtype != (chooses ? DType::kBool : DType::kFloat32)) return false;
    if (!MaskShape(graph, mask, sizes).has_value()) return false;
  }
  return true;
}

// One mask operand for all masks; kNone when there are none.
absl::StatusOr<ValueId> CombineMasks(Graph& graph, const AttentionPattern& pattern,
                                     const Sizes& sizes) {
  ValueId sum = kNone;
  for (const AttentionMask& mask : pattern.masks) {
    const Shape shape = *MaskShape(graph, mask, sizes);
    ASSIGN_OR_RETURN(ValueId value, AddReshape(graph, mask.value, shape));
    if (mask.kind == AttentionMask::Kind::kSub) {
      ASSIGN_OR_RETURN(value, AddInferred(graph, "Neg", {value}));
    } else if (mask.kind != AttentionMask::Kind::kAdd) {
      const bool keep = mask.kind == AttentionMask::Kind::kKeep;
      if (keep && pattern.masks.size() == 1 && std::isinf(mask.fill)) return value;
      const ValueId zero = graph.AddConstant("", Tensor::FloatScalar(0));
      const ValueId fill = graph.AddConstant("", Tensor::FloatScalar(mask.fill));
      ASSIGN_OR_RETURN(
          value, AddInferred(graph, "Where", {value, keep ? zero : fill, keep ? fill : zero}));
    }
    if (sum == kNone) {
      sum = value;
    } else {
      ASSIGN_OR_RETURN(sum, AddInferred(graph, "Add", {sum, value}));
    }
  }
  return sum;
}

// Puts the [batch, queries, heads * size_v] attention in the place of the pattern's result, or of
// the value below it where the heads are back in their tokens.
absl::Status ReplaceResult(Graph& graph, const AttentionPattern& pattern, const Sizes& sizes,
                           ValueId attention) {
  const int64_t width = sizes.heads * sizes.size_v;
  std::optional<StridedView> view = StridedView::Strided({{sizes.batch, sizes.queries * width},
                                                          {sizes.heads, sizes.size_v},
                                                          {sizes.queries, width},
                                                          {sizes.size_v, 1}})
                                        .Reshaped(*ShapeOf(graph, pattern.result));
  REPRISE_CHECK(view.has_value());
  ValueId value = pattern.result;
  ValueId dense = view->IsDense() ? value : kNone;
  for (int step = 0; step < kMaxSteps; ++step) {
    const NodeId user = OnlyUser(graph, value);
    if (user == kNone) break;
    const Node& node = graph.node(user);
    if ((node.op != "Reshape" && node.op != "Transpose") || node.inputs[0] != value) break;
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
    ASSIGN_OR_RETURN(replacement, AddInferred(graph, "Transpose", {replacement},
                                              {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  }
  const Shape shape = *ShapeOf(graph, dense);
  ASSIGN_OR_RETURN(replacement, AddReshape(graph, replacement, shape));
  Replace(graph, dense, replacement);
  return absl::OkStatus();
}

// The furthest value of rows [q, k, v] that all three operands are cut from; kNone when there is
// none.
ValueId PackedSource(const std::vector<Source>& q, const std::vector<Source>& k,
                     const std::vector<Source>& v, const Sizes& sizes, double* scale) {
  const int64_t width = sizes.heads * sizes.size;
  if (sizes.size != sizes.size_v || sizes.queries != sizes.keys) return kNone;
  for (auto a = q.rbegin(); a != q.rend(); ++a) {
    if (a->width != 3 * width || a->offset != 0) continue;
    for (const Source& b : k) {
      if (b.value != a->value || b.offset != width) continue;
      for (const Source& c : v) {
        if (c.value != a->value || c.offset != 2 * width) continue;
        *scale *= a->scale * b.scale;
        return a->value;
      }
    }
  }
  return kNone;
}

class FuseAttentionPass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_attention"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (NodeId id : graph.NodeIds()) {
      if (graph.node(id).removed || graph.node(id).op != "Softmax") continue;
      const std::optional<AttentionPattern> pattern = MatchAttention(graph, id);
      if (!pattern.has_value()) continue;
      const std::optional<Sizes> sizes = SizesOf(graph, *pattern);
      if (!sizes.has_value() || !MasksFit(graph, *pattern, *sizes)) continue;
      RETURN_IF_ERROR(Rewrite(graph, *pattern, *sizes, graph.node(id).name));
      changed = true;
    }
    return changed;
  }

 private:
  static absl::Status Rewrite(Graph& graph, const AttentionPattern& pattern, const Sizes& sizes,
                              std::string name) {
    const Operand q = {pattern.q, sizes.batch, sizes.heads, sizes.queries, sizes.size, false, true};
    const Operand k = {pattern.k,  sizes.batch,     sizes.heads, sizes.keys,
                       sizes.size, !pattern.k_rows, true};
    const Operand v = {pattern.v, sizes.batch, sizes.heads, sizes.keys, sizes.size_v, false, false};
    const std::vector<Source> q_sources = FindSources(graph, q);
    const std::vector<Source> k_sources = FindSources(graph, k);
    const std::vector<Source> v_sources = FindSources(graph, v);
    double scale = pattern.scale;
    std::vector<ValueId> inputs(3, kNone);
    const ValueId packed = PackedSource(q_sources, k_sources, v_sources, sizes, &scale);
    if (packed != kNone) {
      const int64_t width = 3 * sizes.heads * sizes.size;
      ASSIGN_OR_RETURN(inputs[0], AddReshape(graph, packed, {sizes.batch, sizes.queries, width}));
    } else {
      ASSIGN_OR_RETURN(inputs[0], TokenMajor(graph, q, q_sources, scale));
      ASSIGN_OR_RETURN(inputs[1], TokenMajor(graph, k, k_sources, scale));
      ASSIGN_OR_RETURN(inputs[2], TokenMajor(graph, v, v_sources, scale));
    }
    ASSIGN_OR_RETURN(const ValueId mask, CombineMasks(graph, pattern, sizes));
    if (mask != kNone) inputs.push_back(mask);
    while (inputs.back() == kNone) inputs.pop_back();
    ASSIGN_OR_RETURN(const ValueId attention,
                     AddInferred(graph, "reprise.Attention", std::move(inputs),
                                 {{"num_heads", sizes.heads},
                                  {"scale", static_cast<float>(scale)},
                                  {"nan_to_zero", int64_t{pattern.nan_to_zero}},
                                  {"packed_qkv", int64_t{packed != kNone}}},
                                 name));
    return ReplaceResult(graph, pattern, sizes, attention);
  }
};

}  // namespace

std::unique_ptr<Pass> FuseAttention() { return std::make_unique<FuseAttentionPass>(); }

}  // namespace reprise
