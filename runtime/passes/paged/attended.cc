#include "runtime/passes/paged/attended.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/passes/paged/paged_passes.h"

namespace reprise {

absl::StatusOr<std::vector<Attended>> AttendedIn(const Graph& graph, const Decoder& decoder,
                                                 int64_t keys, int64_t cross_keys) {
  std::vector<Attended> all;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != AttentionOp::kName) continue;
    const auto key = FindCached(graph, node.input(1)), value = FindCached(graph, node.input(2));
    if (!key.has_value() || !value.has_value()) continue;
    const auto refuse = [&](absl::string_view why) {
      return absl::UnimplementedError(absl::StrCat(NodeLabel(node), ": ", std::string(why)));
    };
    Attended attended = {.key = graph.node(key->cached).attributes.Int("cache", 0),
                         .value = graph.node(value->cached).attributes.Int("cache", 0),
                         .heads = node.attributes.Int("num_heads", 1)};
    const int64_t kv_heads = decoder.caches[attended.key].heads;
    const bool by_head = node.attributes.Int("k_by_head", 0) != 0;
    const bool grouped = kv_heads != 1 && kv_heads != attended.heads;
    if (attended.heads % kv_heads != 0 || (grouped && !by_head)) {
      return refuse("heads of queries share heads of keys in an unknown order");
    }
    attended.cross = decoder.caches[attended.key].cross;
    if (attended.cross != decoder.caches[attended.value].cross ||
        attended.cross != (key->rows == kNone) || attended.cross != (value->rows == kNone)) {
      return refuse("its keys are an encoder's, and its values are not, or the other way about");
    }
    const int64_t seen = attended.cross ? cross_keys : keys;
    attended.facts = {.visible = seen};
    if (node.input(3) != kNone) {
      const Tensor* mask = graph.ConstantOf(node.inputs[3]);
      if (mask == nullptr) return refuse("its mask depends on data");
      const absl::StatusOr<MaskFacts> facts = FactsOf(*mask, attended.heads, seen);
      if (!facts.ok()) return refuse(facts.status().message());
      attended.facts = *facts;
    }
    const MaskFacts& facts = attended.facts;
    if (attended.cross &&
        (facts.visible != seen || !facts.slopes.empty() || !facts.biases.empty())) {
      return refuse("its mask hides places of the encoder's result, or adds to their scores");
    }
    all.push_back(std::move(attended));
  }
  return all;
}

bool SameRule(const MaskFacts& longest, const MaskFacts& here) {
  const auto is_near = [](float a, float b) { return std::abs(a - b) <= 1e-4f; };
  if (longest.biases.empty() || here.biases.empty()) {
    return longest.biases.empty() == here.biases.empty() &&
           absl::c_equal(longest.slopes, here.slopes, is_near);
  }
  const auto heads = static_cast<int64_t>(here.biases.size()) / here.span;
  const auto at = [](const MaskFacts& facts, int64_t head, int64_t distance) {
    return facts.biases[head * facts.span + std::min(distance, facts.span - 1)];
  };
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t distance = 0; distance < here.visible; ++distance) {
      if (!is_near(at(longest, head, distance), at(here, head, distance))) return false;
    }
  }
  return true;
}

}  // namespace reprise
