// Turns attention whose scores include what queries and keys look up in tables by distance
// into reprise.RelativeAttention.
//
// The form is that of disentangled attention: a product of heads with one table of all distances
// (or buckets of them), of which GatherElements picks for every query and key the column of their
// distance; for keys its result is transposed. A batch repeats the table.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/attention_match.h"
#include "runtime/passes/match/head_source.h"

namespace reprise {
namespace {

constexpr int kMaxSteps = 8;

struct RelativeSizes {
  int64_t batch, heads, length, size;
};

// A product of heads with a table of which a column is picked by distance.
struct Term {
  bool of_keys = false;
  ValueId table = kNone;  // a weight of [heads, size, width] or, where it lies so, its last two
                          // dims swapped
  bool transposed = false;
  int64_t width = 0;
  std::vector<int64_t> places;  // columns for the distances 1 - length to length - 1
  double scale = 1;
};

struct Pattern {
  std::optional<Term> q, k;
  // Another addend of the scores: `mask`, or `fill` wherever `keep` hides.
  ValueId mask = kNone;
  ValueId keep = kNone;
  bool keeps_true = true;  // else it hides where true
  double fill = 0;
  ValueId over = kNone;  // added to all of that
};

bool SwapsLastTwo(const Node& node, size_t rank) {
  std::vector<int64_t> perm = node.attributes.Ints("perm");
  if (node.op != TransposeOp::kName || perm.size() != rank || rank < 2) return false;
  std::swap(perm[rank - 1], perm[rank - 2]);
  return std::is_sorted(perm.begin(), perm.end());
}

// Returns whether both have the same last two dims.
bool KeepsSquare(const Graph& graph, ValueId a, ValueId b) {
  if (!ShapeOf(graph, a).has_value() || !ShapeOf(graph, b).has_value()) return false;
  const Shape &x = *ShapeOf(graph, a), &y = *ShapeOf(graph, b);
  return x.size() >= 2 && y.size() >= 2 && x.back() == y.back() &&
         x[x.size() - 2] == y[y.size() - 2];
}

// Returns whether it is a Tile or Expand that writes all of its operand one copy after another.
bool RepeatsWhole(const Graph& graph, const Node& node) {
  if ((node.op != TileOp::kName && node.op != ExpandOp::kName) ||
      !KeepsSquare(graph, node.inputs[0], node.outputs[0])) {
    return false;
  }
  const Shape &in = *ShapeOf(graph, node.inputs[0]), &out = *ShapeOf(graph, node.outputs[0]);
  const size_t more = out.size() - in.size();
  bool copied = true;  // so far only dims that are repeated, or have one element
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t before = d < more ? 1 : in[d - more];
    if (out[d] != before && !copied) return false;
    copied &= before == 1;
  }
  return true;
}

// Returns the places of all distances, where `index` [..., length, length] is one square again
// and again, of which each diagonal has one number.
std::optional<std::vector<int64_t>> PlacesOf(const Graph& graph, ValueId index, int64_t length,
                                             int64_t width) {
  for (int step = 0; step < kMaxSteps && KnownConstant(graph, index) == nullptr; ++step) {
    const NodeId producer = ProducerOf(graph, index);
    if (producer == kNone) return std::nullopt;
    const Node& node = graph.node(producer);
    if (node.op != ReshapeOp::kName && !RepeatsWhole(graph, node)) return std::nullopt;
    if (!KeepsSquare(graph, node.inputs[0], index)) return std::nullopt;
    index = node.inputs[0];
  }
  const Tensor* constant = KnownConstant(graph, index);
  if (constant == nullptr || constant->num_elements() < length * length) return std::nullopt;
  const Shape& shape = constant->shape();
  if (shape.size() < 2 || shape.back() != length || shape[shape.size() - 2] != length) {
    return std::nullopt;
  }
  const size_t square = length * length * DTypeSize(constant->dtype());
  const auto* bytes = static_cast<const char*>(constant->data());
  for (size_t at = square; at < constant->bytes(); at += square) {
    if (std::memcmp(bytes, bytes + at, square) != 0) return std::nullopt;
  }
  const Tensor first = Tensor::Make(constant->dtype(), {length, length},
                                    [&](void* data) { std::memcpy(data, bytes, square); });
  absl::StatusOr<std::vector<int64_t>> places = first.ToInt64s();
  if (!places.ok()) return std::nullopt;
  std::vector<int64_t> by_distance(2 * length - 1);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      int64_t place = (*places)[i * length + j];
      if (place < 0) place += width;
      if (place < 0 || place >= width) return std::nullopt;
      int64_t& known = by_distance[i - j + length - 1];
      if (i > 0 && j > 0 && known != place) return std::nullopt;
      known = place;
    }
  }
  return by_distance;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Node& attention, const RelativeSizes& sizes)
      : graph_(graph), attention_(attention), sizes_(sizes) {}

  std::optional<Pattern> Match() {
    const ValueId mask = BeforeReshapes(graph_, attention_.inputs[3]);
    if (!KeepsSquare(graph_, mask, attention_.inputs[3])) return std::nullopt;
    if (!MatchMask(mask) && !MatchSum(mask) && !MatchMaskUnder(mask)) return std::nullopt;
    if (!pattern_.q.has_value() && !pattern_.k.has_value()) return std::nullopt;
    const Shape& sum = *ShapeOf(graph_, mask);
    // Fewer elements: some heads or rows share theirs.
    if (NumElements(sum) != NumElements(Scores())) return std::nullopt;
    for (const ValueId part : {pattern_.mask, pattern_.keep, pattern_.over}) {
      if (!MeetsScores(part, sum)) return std::nullopt;
    }
    return pattern_;
  }

 private:
  Shape Scores() const { return {sizes_.batch, sizes_.heads, sizes_.length, sizes_.length}; }

  // Returns whether `part` fits. A value that broadcasts to a sum broadcasts to the scores in the
  // same way, though the sum was reshaped to be added to them.
  bool MeetsScores(ValueId part, const Shape& sum) const {
    if (part == kNone) return true;
    if (!ShapeOf(graph_, part).has_value()) return false;
    const Shape& shape = *ShapeOf(graph_, part);
    if (shape.size() > Scores().size()) return false;
    const auto without_leading_ones = [](const Shape& all) {
      return Shape(std::find_if(all.begin(), all.end(), [](int64_t dim) { return dim != 1; }),
                   all.end());
    };
    if (without_leading_ones(sum) == without_leading_ones(Scores())) return true;
    return shape.size() <= 2 ||
           std::all_of(shape.begin(), shape.end() - 2, [](int64_t dim) { return dim == 1; });
  }

  // Terms of which a mask hides some.
  bool MatchMask(ValueId value) {
    const Node* where = graph_.ProducerIf(value, WhereOp::kName);
    if (where == nullptr) return false;
    for (int side = 1; side <= 2; ++side) {
      const auto fill = KnownScalar(graph_, where->inputs[3 - side]);
      if (!fill.has_value() || !(*fill <= kLowestFill)) continue;
      if (!SameShape(graph_, where->inputs[side], value)) continue;
      if (!MatchSum(where->inputs[side])) continue;
      pattern_.keep = where->inputs[0];
      pattern_.keeps_true = side == 1;
      pattern_.fill = *fill;
      return true;
    }
    return false;
  }

  // Matches a mask, and another mask that is added to it.
  bool MatchMaskUnder(ValueId value) {
    const Node* add = graph_.ProducerIf(value, AddOp::kName);
    if (add == nullptr) return false;
    for (int side = 0; side < 2; ++side) {
      const ValueId under = add->inputs[side];
      if (!SameShape(graph_, under, value) || OnlyUser(graph_, under) == kNone) continue;
      if (!MatchMask(under)) continue;
      pattern_.over = add->inputs[1 - side];
      return true;
    }
    return false;
  }

  // Terms, or terms and a mask.
  bool MatchSum(ValueId value) {
    const Pattern before = pattern_;
    if (MatchTerms(value, 1, kMaxSteps)) return true;
    pattern_ = before;
    const Node* add = graph_.ProducerIf(value, AddOp::kName);
    if (add == nullptr) return false;
    for (int side = 0; side < 2; ++side) {
      pattern_ = before;
      if (!SameShape(graph_, add->inputs[side], value)) continue;
      if (!MatchTerms(add->inputs[side], 1, kMaxSteps)) continue;
      pattern_.mask = add->inputs[1 - side];
      return true;
    }
    pattern_ = before;
    return false;
  }

  // Matches nothing but terms.
  bool MatchTerms(ValueId value, double scale, int steps) {
    const NodeId producer = ProducerOf(graph_, value);
    if (producer == kNone || steps == 0 || OnlyUser(graph_, value) == kNone ||
        !IsFloat32(graph_, value)) {
      return false;
    }
    const Node& node = graph_.node(producer);
    if (node.op == ReshapeOp::kName) {
      return KeepsSquare(graph_, node.inputs[0], value) &&
             MatchTerms(node.inputs[0], scale, steps - 1);
    }
    if (node.op == AddOp::kName) {
      return SameShape(graph_, node.inputs[0], value) && SameShape(graph_, node.inputs[1], value) &&
             MatchTerms(node.inputs[0], scale, steps - 1) &&
             MatchTerms(node.inputs[1], scale, steps - 1);
    }
    if (node.op == MulOp::kName || node.op == DivOp::kName) {
      for (int side = 1; side >= (node.op == MulOp::kName ? 0 : 1); --side) {
        const auto factor = KnownScalar(graph_, node.inputs[side]);
        if (!factor.has_value() || !SameShape(graph_, node.inputs[1 - side], value)) continue;
        const double by = node.op == MulOp::kName ? *factor : 1 / *factor;
        return MatchTerms(node.inputs[1 - side], scale * by, steps - 1);
      }
      return false;
    }
    const bool of_keys = SwapsLastTwo(node, ShapeOf(graph_, value)->size());
    return MatchPicked(of_keys ? node.inputs[0] : value, of_keys, scale);
  }

  // Matches the columns of all pairs' distances, picked from a product with all columns.
  bool MatchPicked(ValueId value, bool of_keys, double scale) {
    std::optional<Term>& term = of_keys ? pattern_.k : pattern_.q;
    const Node* pick = graph_.ProducerIf(value, GatherElementsOp::kName);
    if (pick == nullptr || term.has_value() || OnlyUser(graph_, value) == kNone) return false;
    const ValueId picked = pick->inputs[0];
    const auto rank = static_cast<int64_t>(ShapeOf(graph_, value)->size());
    const int64_t axis = pick->attributes.Int("axis", 0);
    const Node* product = graph_.ProducerIf(picked, MatMulOp::kName);
    if ((axis != -1 && axis != rank - 1) || product == nullptr ||
        OnlyUser(graph_, picked) == kNone) {
      return false;
    }
    if (!IsOperand(product->inputs[0], of_keys, &scale)) return false;
    if (!std::isfinite(scale)) return false;
    Term found = {.of_keys = of_keys, .width = ShapeOf(graph_, picked)->back(), .scale = scale};
    auto places = PlacesOf(graph_, pick->inputs[1], sizes_.length, found.width);
    if (!places.has_value() || !MatchTable(product->inputs[1], found)) return false;
    found.places = *std::move(places);
    term = std::move(found);
    return true;
  }

  // `heads` are the heads of the attention's queries, or keys, times a scale.
  bool IsOperand(ValueId heads, bool keys, double* scale) const {
    const ValueId tokens = BeforeReshapes(graph_, attention_.inputs[keys ? 1 : 0]);
    const HeadOperand operand = {heads,       sizes_.batch, sizes_.heads, sizes_.length,
                                 sizes_.size, false,        true};
    for (const HeadSource& source : FindHeadSources(graph_, operand)) {
      if (source.width != sizes_.heads * sizes_.size) continue;
      if (BeforeReshapes(graph_, source.value) != tokens) continue;
      *scale *= source.scale;
      return true;
    }
    return false;
  }

  // Matches a table that is the same for all rows of the batch.
  bool MatchTable(ValueId value, Term& term) const {
    const int64_t elements = sizes_.heads * sizes_.size * term.width;
    for (int step = 0; step < kMaxSteps && !IsWeight(graph_, value); ++step) {
      const NodeId producer = ProducerOf(graph_, value);
      if (producer == kNone) return false;
      const Node& node = graph_.node(producer);
      if (node.input(0) == kNone || !ShapeOf(graph_, node.inputs[0]).has_value()) return false;
      if (SwapsLastTwo(node, ShapeOf(graph_, value)->size())) {
        term.transposed = !term.transposed;
      } else if (!(node.op == ReshapeOp::kName && KeepsSquare(graph_, node.inputs[0], value)) &&
                 !RepeatsWhole(graph_, node)) {
        return false;
      }
      value = node.inputs[0];
    }
    term.table = value;
    if (!IsWeight(graph_, value) || !IsFloat32(graph_, value)) return false;
    const Shape& shape = *ShapeOf(graph_, value);
    const int64_t last = term.transposed ? sizes_.size : term.width;
    return shape.size() >= 2 && NumElements(shape) == elements && shape.back() == last &&
           shape[shape.size() - 2] * last == sizes_.size * term.width;
  }

  const Graph& graph_;
  const Node& attention_;
  const RelativeSizes sizes_;
  Pattern pattern_;
};

std::optional<RelativeSizes> RelativeSizesOf(const Graph& graph, const Node& attention) {
  constexpr size_t kMask = AttentionOp::kMask;
  if (attention.op != AttentionOp::kName || AttentionOp::From(attention.attributes).packed_qkv ||
      attention.input(AttentionOp::kSinks) != kNone ||
      AttentionOp::From(attention.attributes).softcap != 0 || attention.input(kMask) == kNone ||
      !IsFloat32(graph, attention.inputs[kMask]) ||
      !SameShape(graph, attention.inputs[0], attention.inputs[1])) {
    return std::nullopt;
  }
  const Shape& q = *ShapeOf(graph, attention.inputs[0]);
  const int64_t heads = AttentionOp::From(attention.attributes).num_heads;
  const RelativeSizes sizes = {q[0], heads, q[1], q[2] / heads};
  return sizes.length > 0 ? std::optional<RelativeSizes>(sizes) : std::nullopt;
}

// [heads, size, width], scaled.
absl::StatusOr<ValueId> DistanceTableOf(Graph& graph, const RelativeSizes& sizes,
                                        const Term& term) {
  const Shape shape = {sizes.heads, sizes.size, term.width};
  ValueId table = term.table;
  if (term.transposed) {
    ASSIGN_OR_RETURN(table, AddReshape(graph, table, {sizes.heads, term.width, sizes.size}));
    ASSIGN_OR_RETURN(table,
                     AddWeight(graph, TransposeOp::kName, {{"perm", std::vector<int64_t>{0, 2, 1}}},
                               {table}, DType::kFloat32, shape));
  } else {
    ASSIGN_OR_RETURN(table, AddReshape(graph, table, shape));
  }
  if (term.scale == 1) return table;
  const ValueId scale = graph.AddConstant("", Tensor::FloatScalar(static_cast<float>(term.scale)));
  return AddWeight(graph, MulOp::kName, {}, {table, scale}, DType::kFloat32, shape);
}

absl::StatusOr<ValueId> SeenMaskOf(Graph& graph, const Pattern& pattern) {
  if (pattern.keep == kNone) return pattern.mask;
  const ValueId fill = graph.AddConstant("", Tensor::FloatScalar(static_cast<float>(pattern.fill)));
  ValueId seen = pattern.mask;
  if (seen == kNone) seen = graph.AddConstant("", Tensor::FloatScalar(0));
  ASSIGN_OR_RETURN(const ValueId hidden,
                   AddInferred(graph, WhereOp::kName,
                               {pattern.keep, pattern.keeps_true ? seen : fill,
                                pattern.keeps_true ? fill : seen}));
  if (pattern.over == kNone) return hidden;
  return AddInferred(graph, AddOp::kName, {hidden, pattern.over});
}

absl::Status RewriteRelative(Graph& graph, NodeId id, const RelativeSizes& sizes,
                             const Pattern& pattern) {
  const Node attention = graph.node(id);
  std::vector<ValueId> inputs = {attention.inputs[0], attention.inputs[1], attention.inputs[2]};
  ASSIGN_OR_RETURN(inputs.emplace_back(), SeenMaskOf(graph, pattern));
  inputs.push_back(kNone);
  for (const std::optional<Term>& term : {pattern.q, pattern.k}) {
    if (!term.has_value()) {
      inputs.insert(inputs.end(), {kNone, kNone});
      continue;
    }
    ASSIGN_OR_RETURN(inputs.emplace_back(), DistanceTableOf(graph, sizes, *term));
    inputs.push_back(graph.AddConstant("", Tensor::Int64s(term->places)));
  }
  while (inputs.back() == kNone) inputs.pop_back();
  Attributes attributes;
  attributes.Set("num_heads", sizes.heads);
  attributes.Set("scale", attention.attributes.Float("scale", 1));
  attributes.Set("nan_to_zero", attention.attributes.Int("nan_to_zero", 0));
  ASSIGN_OR_RETURN(const ValueId fused,
                   AddInferred(graph, RelativeAttentionOp::kName, std::move(inputs),
                               std::move(attributes), attention.name));
  Replace(graph, attention.outputs[0], fused);
  return absl::OkStatus();
}

absl::StatusOr<bool> FuseRelativeAttentionAt(Graph& graph, NodeId id) {
  const std::optional<RelativeSizes> sizes = RelativeSizesOf(graph, graph.node(id));
  if (!sizes.has_value()) return false;
  const auto pattern = Matcher(graph, graph.node(id), *sizes).Match();
  if (!pattern.has_value()) return false;
  RETURN_IF_ERROR(RewriteRelative(graph, id, *sizes, *pattern));
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseRelativeAttention() {
  return PassOfNodes("fuse_relative_attention", FuseRelativeAttentionAt);
}

}  // namespace reprise
