#include "runtime/passes/paged/present_outputs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/append_rows_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// The input that `value` is the past of, where new rows are joined to one; else kNone.
ValueId PastOf(const Graph& graph, ValueId value) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  if (node.op == IdentityOp::kName) return PastOf(graph, node.inputs[0]);
  const int64_t axis = node.attributes.Int("axis", 0);
  const bool joined =
      node.op == ConcatOp::kName && node.inputs.size() == 2 && (axis == 2 || axis == -2);
  if (!joined && node.op != AppendRowsOp::kName) return kNone;
  return node.inputs[0];
}

}  // namespace

absl::StatusOr<std::vector<int>> FindPresents(const Graph& symbolic, const Decoder& decoder,
                                              const std::vector<std::string>& outputs) {
  std::vector<int> presents(outputs.size(), kNoCache);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i == decoder.logits) continue;
    const ValueId past = PastOf(symbolic, symbolic.outputs()[i]);
    for (size_t cache = 0; cache < decoder.caches.size() && past != kNone; ++cache) {
      if (symbolic.FindValue(decoder.caches[cache].input) == past) {
        presents[i] = static_cast<int>(cache);
      }
    }
    if (presents[i] == kNoCache) {
      return absl::UnimplementedError(
          absl::StrCat("output '", outputs[i], "' is no cache with new rows behind it"));
    }
  }
  for (size_t cache = 0; cache < decoder.caches.size(); ++cache) {
    if (absl::c_count(presents, static_cast<int>(cache)) == 1) continue;
    return absl::UnimplementedError(
        absl::StrCat("not one output continues cache '", decoder.caches[cache].input, "'"));
  }
  return presents;
}

}  // namespace reprise
