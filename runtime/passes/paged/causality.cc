#include "runtime/passes/paged/causality.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/decoder_inputs.h"
#include "runtime/passes/paged/mask_facts.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

// New tokens, cached ones before them, and places of an encoder's result: no two sums are equal.
constexpr int64_t kNewTokens = 3, kCachedTokens = 8, kKeys = kCachedTokens + kNewTokens,
                  kPlaces = 13;

// A request of one row as constants, but for ids and caches.
class SeveralTokens {
 public:
  explicit SeveralTokens(const Graph& symbolic) : graph_(symbolic) {}

  absl::StatusOr<Graph> Fuse(const Decoder& decoder, const ParameterValueOf& value_of) && {
    Resize(decoder.ids, {1, kNewTokens});
    Resize(decoder.states, {1, kPlaces});
    for (const DecoderCache& cache : decoder.caches) {
      TakeRows(cache, decoder.ids);
    }
    std::vector<int64_t> places(kNewTokens);
    std::iota(places.begin(), places.end(), kCachedTokens);
    Take(decoder.positions, {1, kNewTokens}, places);
    Take(decoder.place, {kNewTokens}, places);
    Take(decoder.mask, {1, kKeys}, std::vector<int64_t>(kKeys, 1));
    Take(decoder.states_mask, {1, kPlaces}, std::vector<int64_t>(kPlaces, 1));
    Take(decoder.last_keys, {1}, {kKeys - 1});
    TakeOne(decoder.length, kKeys);
    TakeOne(decoder.cache_branch, 1);
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
  // The leading dims of an input, where there is one.
  void Resize(const std::string& name, const std::vector<int64_t>& sizes) {
    if (name.empty()) return;
    std::vector<Dim>& dims = graph_.value(graph_.FindValue(name)).dims;
    for (size_t i = 0; i < std::min(dims.size(), sizes.size()); ++i) dims[i] = {.size = sizes[i]};
  }

  // Rows that stand for those of a cache take its place, as in the paged form: what is fused over
  // them is what is fused there.
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
};

// Whether an attention of new tokens over cached ones and themselves.
bool ReadsOwnCache(const Graph& graph, const Node& node) {
  if (node.op != AttentionOp::kName || node.input(1) == kNone) return false;
  const auto op = AttentionOp::From(node);
  const Shape& queries = *graph.value(node.inputs[AttentionOp::kQueries]).shape;
  const Shape& keys = *graph.value(node.inputs[AttentionOp::kKeys]).shape;
  return queries[1] == kNewTokens && keys[op.k_by_head ? 2 : 1] == kKeys;
}

}  // namespace

absl::Status CheckCausal(const Graph& symbolic, const Decoder& decoder,
                         const ParameterValueOf& value_of, int64_t attentions) {
  ASSIGN_OR_RETURN(const Graph graph, SeveralTokens(symbolic).Fuse(decoder, value_of));
  int64_t found = 0;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.removed || !ReadsOwnCache(graph, node)) continue;
    ++found;
    const ValueId mask = node.input(AttentionOp::kMask);
    const Tensor* known = mask == kNone ? nullptr : graph.ConstantOf(mask);
    if (mask != kNone && known == nullptr) {
      return absl::UnimplementedError(absl::StrCat(NodeLabel(node), ": its mask depends on data"));
    }
    if (known == nullptr || !HidesLaterKeys(*known, kNewTokens, kKeys)) {
      return absl::UnimplementedError(
          absl::StrCat(NodeLabel(node), ": new tokens see those that come after them"));
    }
  }
  if (found >= attentions) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("of ", attentions,
                   " attentions over caches, what several new tokens see is "
                   "known of ",
                   found));
}

}  // namespace reprise
