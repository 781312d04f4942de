// Keys and values that lie head by head, as caches of a decoder do, are attended to where they lie:
// fuse_attention has made a Transpose to tokens of them, and an Expand where several heads of
// queries share one.
#include <tuple>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Returns the [batch, heads, rows, size] value that `tokens` [batch, rows, all heads * size] is
// made of; kNone where it is made in another way.
ValueId HeadsBehind(const Graph& graph, ValueId tokens, int64_t all_heads) {
  const Shape& shape = *ShapeOf(graph, tokens);
  const int64_t batch = shape[0], rows = shape[1], size = shape[2] / all_heads;
  ValueId value = BeforeReshapes(graph, tokens);
  int64_t heads = all_heads;
  if (const Node* expand = graph.ProducerIf(value, ExpandOp::kName); expand != nullptr) {
    const Shape& wide = *ShapeOf(graph, value);
    if (wide.size() != 5 || wide[2] * wide[3] != all_heads) return kNone;
    heads = wide[2];
    if (wide != Shape{batch, rows, heads, all_heads / heads, size} ||
        !HasShape(graph, expand->inputs[0], {batch, rows, heads, 1, size})) {
      return kNone;
    }
    value = BeforeReshapes(graph, expand->inputs[0]);
  }
  if (!HasShape(graph, value, {batch, rows, heads, size})) return kNone;
  // The Transposes composed: dim i of the result is dim places[i] of the value they start from.
  std::vector<int64_t> places = {0, 1, 2, 3};
  while (const Node* transpose = graph.ProducerIf(value, TransposeOp::kName)) {
    const std::vector<int64_t> perm = transpose->attributes.Ints("perm");
    if (perm.size() != places.size()) return kNone;
    for (int64_t& place : places) place = perm[static_cast<size_t>(place)];
    value = transpose->inputs[0];
    if (places == std::vector<int64_t>{0, 2, 1, 3}) return value;
  }
  return kNone;
}

absl::StatusOr<bool> AttendByHeadAt(Graph& graph, NodeId id) {
  if (graph.node(id).op != AttentionOp::kName || AttentionOp::From(graph.node(id)).packed_qkv) {
    return false;
  }
  const int64_t heads = AttentionOp::From(graph.node(id)).num_heads;
  const ValueId k = HeadsBehind(graph, graph.node(id).inputs[1], heads);
  const ValueId v = HeadsBehind(graph, graph.node(id).inputs[2], heads);
  const auto heads_of = [&](ValueId value) {
    return value == kNone ? heads : (*ShapeOf(graph, value))[1];
  };
  // Heads of queries share keys and values both, or neither.
  if ((k == kNone && v == kNone) || heads_of(k) != heads_of(v)) return false;
  for (const auto& [input, value, attribute] :
       {std::tuple{1, k, "k_by_head"}, std::tuple{2, v, "v_by_head"}}) {
    if (value == kNone) continue;
    const NodeId before = graph.value(graph.node(id).inputs[input]).producer;
    graph.SetInput(id, input, value);
    graph.node(id).attributes.Set(attribute, int64_t{1});
    RemoveIfDead(graph, before);
  }
  return true;
}

}  // namespace

std::unique_ptr<Pass> AttendByHead() { return PassOfNodes("attend_by_head", AttendByHeadAt); }

}  // namespace reprise
