// Gather(table, ids) and the Adds between them become one reprise.EmbeddingSum. Rows of bytes that
// DequantizeLinear makes floats are rows of the dequantised table, which kernels read as stored.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

struct Lookup {
  ValueId table = kNone, ids = kNone;
  ValueId scale = kNone, zero = kNone;  // set where rows are dequantised; kNone: they are floats
};

// Rows of a table that is a parameter, as floats or as bytes with one scale for all.
std::optional<Lookup> MatchLookup(const Graph& graph, ValueId value) {
  if (!IsFloat32(graph, value)) return std::nullopt;
  Lookup lookup;
  if (const Node* floats = graph.ProducerIf(value, DequantizeLinearOp::kName); floats != nullptr) {
    value = floats->inputs[0];
    lookup.scale = floats->inputs[1];
    lookup.zero = floats->input(2);
    if (OnlyUser(graph, value) == kNone || !KnownScalar(graph, lookup.scale).has_value() ||
        DTypeSize(graph.value(value).dtype) != 1 ||
        (lookup.zero != kNone && !KnownScalar(graph, lookup.zero).has_value())) {
      return std::nullopt;
    }
  }
  const Node* gather = graph.ProducerIf(value, GatherOp::kName);
  if (gather == nullptr || !IsParameter(graph, gather->inputs[0])) return std::nullopt;
  const int64_t axis = gather->attributes.Int("axis", 0);
  if (ShapeOf(graph, gather->inputs[0])->size() != 2 || (axis != 0 && axis != -2)) {
    return std::nullopt;
  }
  lookup.table = gather->inputs[0];
  lookup.ids = gather->inputs[1];
  return lookup;
}

// Appends each term of the sum `value`; false when a term is something else, or an inner value is
// read by others too.
bool CollectTerms(const Graph& graph, ValueId value, bool outermost, int depth,
                  std::vector<Lookup>& terms) {
  if (!outermost && OnlyUser(graph, value) == kNone) return false;
  if (const std::optional<Lookup> lookup = MatchLookup(graph, value); lookup.has_value()) {
    terms.push_back(*lookup);
    return true;
  }
  const Node* add = graph.ProducerIf(value, AddOp::kName);
  return add != nullptr && depth > 0 &&
         CollectTerms(graph, add->inputs[0], false, depth - 1, terms) &&
         CollectTerms(graph, add->inputs[1], false, depth - 1, terms);
}

absl::StatusOr<ValueId> TableOf(Graph& graph, const Lookup& lookup) {
  if (lookup.scale == kNone) return lookup.table;
  std::vector<ValueId> inputs = {lookup.table, lookup.scale};
  if (lookup.zero != kNone) inputs.push_back(lookup.zero);
  const Shape shape = *ShapeOf(graph, lookup.table);
  return AddWeight(graph, DequantizeLinearOp::kName, {}, inputs, DType::kFloat32, shape);
}

constexpr int kMaxTerms = 8;

absl::StatusOr<bool> FuseEmbeddingIn(Graph& graph) {
  bool changed = false;
  const std::vector<NodeId> ids = graph.NodeIds();
  // From the end, so that the outermost Add of a chain is met first.
  for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
    if (graph.node(*it).removed || graph.node(*it).op != AddOp::kName) continue;
    const ValueId sum = graph.node(*it).outputs[0];
    std::vector<Lookup> terms;
    if (!CollectTerms(graph, sum, true, kMaxTerms, terms)) continue;
    const int64_t width = ShapeOf(graph, terms[0].table)->back();
    bool same_width = true;
    for (const Lookup& term : terms) same_width &= ShapeOf(graph, term.table)->back() == width;
    if (!same_width) continue;
    std::vector<ValueId> operands;
    for (const Lookup& term : terms) {
      ASSIGN_OR_RETURN(const ValueId table, TableOf(graph, term));
      operands.push_back(table);
      operands.push_back(term.ids);
    }
    const std::string name = graph.node(*it).name;
    ASSIGN_OR_RETURN(const ValueId fused,
                     AddInferred(graph, EmbeddingSumOp::kName, std::move(operands), {}, name));
    REPRISE_CHECK(SameShape(graph, fused, sum));
    Replace(graph, sum, fused);
    changed = true;
  }
  return changed;
}

}  // namespace

std::unique_ptr<Pass> FuseEmbedding() { return PassOf("fuse_embedding", FuseEmbeddingIn); }

}  // namespace reprise
