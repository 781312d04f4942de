#include "runtime/passes/paged/causality.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/decoder_inputs.h"
#include "runtime/passes/paged/mask_facts.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// New tokens, cached ones before them, and places of an encoder's result: no two sums are equal.
constexpr int64_t kNewTokens = 3, kCachedTokens = 8, kPlaces = 13;

// A request of one row as constants, except for ids and caches.
class SeveralTokens {
 public:
  // `cached`: tokens whose keys are there; 0: a prompt, by the branch of a merged file for prompts.
  SeveralTokens(const Graph& symbolic, int64_t cached) : graph_(symbolic), cached_(cached) {}

  absl::StatusOr<Graph> Fuse(const Decoder& decoder, const ParameterValueOf& value_of) && {
    Resize(decoder.ids, {1, kNewTokens});
    Resize(decoder.states, {1, kPlaces});
    for (const DecoderCache& cache : decoder.caches) {
      TakeRows(cache, decoder.ids);
    }
    std::vector<int64_t> places(kNewTokens);
    std::iota(places.begin(), places.end(), cached_);
    Take(decoder.positions, {1, kNewTokens}, places);
    Take(decoder.place, {kNewTokens}, places);
    const int64_t keys = cached_ + kNewTokens;
    Take(decoder.mask, {1, keys}, std::vector<int64_t>(static_cast<size_t>(keys), 1));
    Take(decoder.states_mask, {1, kPlaces}, std::vector<int64_t>(kPlaces, 1));
    Take(decoder.last_keys, {1}, {keys - 1});
    TakeOne(decoder.length, keys);
    TakeOne(decoder.cache_branch, cached_ > 0 ? 1 : 0);
    const ValueId logits = graph_.outputs()[decoder.logits];
    graph_.ClearOutputs();
    graph_.AddOutput(logits);
    if (!graph_.Compact()) return absl::InternalError("the graph of several tokens has a cycle");
    ASSIGN_OR_RETURN(Graph fused, Specialize(graph_, {}));
    if (TakeSmallTables(fused, value_of)) {
      ASSIGN_OR_RETURN(fused, Specialize(fused, {}));
    }
    RETURN_IF_ERROR(RunCapturePasses(fused, {.verify = false}));
    return fused;
  }

 private:
  // Resizes the leading dims of an input, where there is one.
  void Resize(const std::string& name, const std::vector<int64_t>& sizes) {
    if (name.empty()) return;
    std::vector<Dim>& dims = graph_.value(graph_.FindValue(name)).dims;
    for (size_t i = 0; i < std::min(dims.size(), sizes.size()); ++i) dims[i] = {.size = sizes[i]};
  }

  // Replaces a cache by rows that stand for its rows, as in the paged form, so that the same ops
  // are fused over them.
  void TakeRows(const DecoderCache& cache, const std::string& ids) {
    const DType dtype = graph_.value(graph_.FindValue(cache.input)).dtype;
    const ValueId rows = AddCachedRows(graph_, graph_.FindValue(ids),
                                       {{"heads", cache.heads},
                                        {"size", cache.size},
                                        {"past", cache.cross ? kPlaces : kCachedTokens}});
    TakeInput(graph_, cache.input, CastRows(graph_, rows, dtype));
  }

  void Take(const std::string& name, const Shape& shape, const std::vector<int64_t>& values) {
    if (name.empty()) return;
    const ValueId input = graph_.FindValue(name);
    const DType dtype = graph_.value(input).dtype;
    graph_.ReplaceWithConstant(input, NumbersAs(dtype, shape, values));
  }

  void TakeOne(const std::string& name, int64_t value) {
    if (name.empty()) return;
    Take(name, Shape(graph_.value(graph_.FindValue(name)).dims.size(), 1), {value});
  }

  Graph graph_;
  const int64_t cached_;
};

// Returns whether an attention of new tokens over `keys`: cached ones and themselves.
bool ReadsOwnTokens(const Graph& graph, const Node& node, int64_t keys) {
  if (node.op != AttentionOp::kName) return false;
  const auto op = AttentionOp::From(node);
  const Shape& queries = *graph.value(node.inputs[AttentionOp::kQueries]).shape;
  if (queries[1] != kNewTokens) return false;
  // All three in one operand: there is no cached one.
  if (node.input(AttentionOp::kKeys) == kNone) return keys == kNewTokens;
  const Shape& shape = *graph.value(node.inputs[AttentionOp::kKeys]).shape;
  return shape[op.k_by_head ? 2 : 1] == keys;
}

// Returns whether the file itself says that requests have one new token: its mask is one longer
// than the past.
bool TakesOneToken(const Graph& symbolic, const Decoder& decoder) {
  const Dim& ids = symbolic.value(symbolic.FindValue(decoder.ids)).dims.back();
  if (ids.is_constant()) return ids.size == 1;
  if (decoder.mask.empty()) return false;
  const auto own = absl::c_find_if(decoder.caches, [](const auto& one) { return !one.cross; });
  const Dim& past = symbolic.value(symbolic.FindValue(own->input)).dims[2];
  const Dim& mask = symbolic.value(symbolic.FindValue(decoder.mask)).dims.back();
  if (past.is_constant() || mask.is_constant()) return false;
  const auto keys = DimSize(mask, {{past.symbol, kCachedTokens}});
  return keys.ok() && *keys == kCachedTokens + 1;
}

absl::Status CheckSeveral(const Graph& symbolic, const Decoder& decoder,
                          const ParameterValueOf& value_of, int64_t attentions, int64_t cached) {
  ASSIGN_OR_RETURN(const Graph graph, SeveralTokens(symbolic, cached).Fuse(decoder, value_of));
  const int64_t keys = cached + kNewTokens;
  int64_t found = 0;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.removed || !ReadsOwnTokens(graph, node, keys)) continue;
    ++found;
    const ValueId mask = node.input(AttentionOp::kMask);
    const Tensor* known = mask == kNone ? nullptr : graph.ConstantOf(mask);
    if (mask != kNone && known == nullptr) {
      return absl::UnimplementedError(absl::StrCat(NodeLabel(node), ": its mask depends on data"));
    }
    if (known == nullptr || !HidesLaterKeys(*known, kNewTokens, keys)) {
      return absl::UnimplementedError(
          absl::StrCat(NodeLabel(node), ": new tokens see those that come after them"));
    }
  }
  if (found >= attentions) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("of ", attentions,
                   " attentions over caches, the mask for several new tokens is "
                   "known for only ",
                   found));
}

}  // namespace

absl::Status CheckCausal(const Graph& symbolic, const Decoder& decoder,
                         const ParameterValueOf& value_of, int64_t attentions) {
  if (TakesOneToken(symbolic, decoder)) return absl::OkStatus();
  absl::Status status = CheckSeveral(symbolic, decoder, value_of, attentions, kCachedTokens);
  // A merged file has a branch for prompts; the other one gets a token at a time.
  if (status.ok() || decoder.cache_branch.empty()) return status;
  return CheckSeveral(symbolic, decoder, value_of, attentions, 0).ok() ? absl::OkStatus() : status;
}

}  // namespace reprise
