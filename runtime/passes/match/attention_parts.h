// The parts that rules expand named attention ops into: the products, masks and Softmax that
// fuse_attention matches.
//
// Shapes of all operands are known. Threads: one caller.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "runtime/passes/kit/rewrite.h"

namespace reprise {

// The additive value that hides a key from a query.
inline constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Returns whether the shapes of all operands are known. They fit the node then: errors are those of
// its shape rule, which may not have been checked before.
absl::StatusOr<bool> HasFittingOperands(Graph& graph, NodeId id);

bool IsUsed(const Graph& graph, ValueId value);
bool OnlyFirstResultIsUsed(const Graph& graph, const Node& node);

// [batch, rows, heads * size] as [batch, heads, rows, size], and back.
absl::StatusOr<ValueId> SplitHeads(Graph& graph, ValueId value, int64_t heads);
absl::StatusOr<ValueId> JoinHeads(Graph& graph, ValueId value);
// Key or value heads that several query heads share, repeated for each.
absl::StatusOr<ValueId> RepeatHeads(Graph& graph, ValueId value, int64_t heads);
// Returns rows [batch, heads, past, size] with `rows` appended; `past` may be kNone.
absl::StatusOr<ValueId> BehindPast(Graph& graph, ValueId past, ValueId rows);

// `keep(query, key)` for each element of a constant of bools [queries, keys]; kNone where all are
// true.
ValueId PositionMask(Graph& graph, int64_t queries, int64_t keys,
                     const std::function<bool(int64_t, int64_t)>& keep);
// Returns onnxruntime's integer masks of attention as values to add to the scores; kNone for a
// form that has none.
absl::StatusOr<ValueId> PaddingMask(Graph& graph, ValueId mask, const Shape& scores, float filter);

// Returns the scores where `keep` is true, `fill` elsewhere.
absl::StatusOr<ValueId> Kept(Graph& graph, ValueId keep, ValueId scores, float fill);
// Returns the scores, the lowest float where a key comes after its query; queries start `past` keys
// after the first. `filter`: the least that masks have added to the scores.
absl::StatusOr<ValueId> MaskFuture(Graph& graph, ValueId scores, int64_t past, float filter);
// q k^T * scale of operands [batch, heads, rows, size].
absl::StatusOr<ValueId> Scores(Graph& graph, ValueId q, ValueId k, float scale);
// softmax(scores) v. `guard`: a query from which all is hidden gives zeros. `sinks` [heads]: a
// score of each head that has no value; kNone: none.
absl::StatusOr<ValueId> Weigh(Graph& graph, ValueId scores, ValueId v, bool guard,
                              const std::string& name, ValueId sinks = kNone);

// Returns an integer of the dtype of `value`, int32 or int64.
Tensor ScalarLike(const Graph& graph, ValueId value, int32_t number);

}  // namespace reprise
