#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/append_rows_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/passes/paged/paged_form.h"
#include "runtime/passes/paged/paged_passes.h"

namespace reprise {
namespace {

constexpr int kMaxCacheSteps = 16;

// Returns the CachedRows that `value` is, under whatever shape.
NodeId CachedAbove(const Graph& graph, ValueId value) {
  for (int step = 0; step < kMaxCacheSteps; ++step) {
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return kNone;
    const Node& node = graph.node(producer);
    if (node.op == CachedRowsOp::kName) return producer;
    // A cast belongs to a client-managed cache of half precision.
    if (node.op != ReshapeOp::kName && node.op != CastOp::kName) return kNone;
    value = node.inputs[0];
  }
  return kNone;
}

bool IsCacheShape(const Shape& shape, int64_t tokens, const Node& cached) {
  return shape ==
         Shape{tokens, cached.attributes.Int("heads", 1), 1, cached.attributes.Int("size", 1)};
}

absl::StatusOr<bool> RewriteCross(Graph& graph, const Node& node, const Attributes& keys,
                                  const Attributes& values) {
  Attributes attributes = {{"num_heads", node.attributes.Int("num_heads", 1)},
                           {"kv_heads", keys.Int("heads", 1)},
                           {"v_size", values.Int("size", 1)},
                           {"scale", node.attributes.Float("scale", 1)},
                           {"k_offset", keys.Int("offset", 0)},
                           {"v_offset", values.Int("offset", 0)},
                           {"context", keys.Int("context", 0)}};
  if (const float cap = node.attributes.Float("softcap", 0); cap != 0) {
    attributes.Set("softcap", cap);
  }
  ASSIGN_OR_RETURN(const ValueId paged,
                   AddInferred(graph, PagedCrossAttentionOp::kName,
                               {node.inputs[0], graph.FindValue(kCrossLengthsInput),
                                graph.FindValue(kCrossTablesInput)},
                               std::move(attributes), node.name));
  Replace(graph, node.outputs[0], paged);
  return true;
}

absl::StatusOr<bool> PageAttentionAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // A copy: adding nodes moves them.
  if (node.op != AttentionOp::kName || node.attributes.Int("packed_qkv", 0) != 0) return false;
  const auto key = FindCached(graph, node.input(1)), value = FindCached(graph, node.input(2));
  if (!key.has_value() || !value.has_value()) return false;
  const Attributes keys = graph.node(key->cached).attributes;
  const Attributes values = graph.node(value->cached).attributes;
  if (!keys.Has("offset") || !values.Has("offset")) return false;  // Masks are being measured.
  if (graph.FindValue(kTablesInput) == kNone) return false;
  const Shape q = *ShapeOf(graph, node.inputs[0]);
  const int64_t heads = keys.Int("heads", 1);
  if (q[1] != 1 || values.Int("heads", 1) != heads) return false;
  if (key->rows == kNone && value->rows == kNone) {
    if (node.input(AttentionOp::kSinks) != kNone) return false;
    return RewriteCross(graph, node, keys, values);
  }
  if (key->rows == kNone || value->rows == kNone) return false;
  Attributes attributes = {{"num_heads", node.attributes.Int("num_heads", 1)},
                           {"kv_heads", heads},
                           {"scale", node.attributes.Float("scale", 1)},
                           {"k_offset", keys.Int("offset", 0)},
                           {"v_offset", values.Int("offset", 0)},
                           {"context", keys.Int("context", 0)},
                           {"k_cache", keys.Int("cache", 0)},
                           {"v_cache", values.Int("cache", 0)}};
  if (const int64_t dtype = keys.Int("cache_dtype", 0); dtype != 0) {
    attributes.Set("cache_dtype", dtype);
    attributes.Set("k_scales", keys.Int("scales", 0));
    attributes.Set("v_scales", values.Int("scales", 0));
  }
  if (const int64_t window = keys.Int("window", 0); window > 0) attributes.Set("window", window);
  if (const float cap = node.attributes.Float("softcap", 0); cap != 0) {
    attributes.Set("softcap", cap);
  }
  if (const auto* biases = keys.Get<std::vector<float>>("biases"); biases != nullptr) {
    attributes.Set("biases", *biases);
    attributes.Set("bias_span", keys.Int("bias_span", 1));
  }
  if (const auto* slopes = keys.Get<std::vector<float>>("slopes"); slopes != nullptr) {
    attributes.Set("slopes", *slopes);
  }
  std::vector<ValueId> inputs = {node.inputs[0]};
  for (const auto& [rows, of] : {std::pair{key->rows, &keys}, std::pair{value->rows, &values}}) {
    ASSIGN_OR_RETURN(inputs.emplace_back(),
                     AddReshape(graph, rows, {q[0], heads * of->Int("size", 1)}));
  }
  for (const char* name : {kPositionsInput, kTablesInput}) {
    inputs.push_back(graph.FindValue(name));
  }
  if (const ValueId sinks = node.input(AttentionOp::kSinks); sinks != kNone) {
    inputs.push_back(sinks);
  }
  ASSIGN_OR_RETURN(const ValueId paged,
                   AddInferred(graph, PagedAttentionOp::kName, std::move(inputs),
                               std::move(attributes), node.name));
  Replace(graph, node.outputs[0], paged);
  return true;
}

}  // namespace

std::optional<CachedOperand> FindCached(const Graph& graph, ValueId operand) {
  CachedOperand found;
  for (int step = 0; step < kMaxCacheSteps; ++step) {
    const NodeId producer = ProducerOf(graph, operand);
    if (producer == kNone) return std::nullopt;
    const Node& node = graph.node(producer);
    if (node.op == CachedRowsOp::kName && node.attributes.Int("cross", 0) != 0) {
      found.cached = producer;
      return found;
    }
    const bool joined = node.op == ConcatOp::kName && node.inputs.size() == 2;
    if (joined || node.op == AppendRowsOp::kName) {
      found.rows = node.inputs[1];
      found.cached = CachedAbove(graph, node.inputs[0]);
      if (found.cached == kNone) return std::nullopt;
      const Shape& all = *ShapeOf(graph, node.outputs[0]);
      const Node& cached = graph.node(found.cached);
      const bool fits = !all.empty() && (!joined || node.attributes.Int("axis", 0) == 2 ||
                                         node.attributes.Int("axis", 0) == -2);
      if (!fits || !IsCacheShape(*ShapeOf(graph, found.rows), all[0], cached)) return std::nullopt;
      return found;
    }
    if (node.op == ExpandOp::kName) {
      found.expanded = true;
    } else if (node.op != ReshapeOp::kName && node.op != TransposeOp::kName &&
               node.op != CastOp::kName) {
      return std::nullopt;
    }
    operand = node.inputs[0];
  }
  return std::nullopt;
}

std::unique_ptr<Pass> PageAttention() { return PassOfNodes("page_attention", PageAttentionAt); }

}  // namespace reprise
