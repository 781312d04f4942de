// Planes, [batch, channels, dims...], with their channels last, [batch, dims..., channels]: how
// passes turn nodes to take and give them so. A Transpose to one layout and the one back go where
// both meet (canonicalize).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

// The limit on the dims of planes whose layout is chosen: [batch, channels, rows, columns].
inline constexpr size_t kMostPlaneDims = 4;

// Planes of one element, which are the same in either layout.
bool AreOfOneElement(const Shape& planes);

// Returns the perms of a Transpose of `rank` dims.
std::vector<int64_t> PermToLast(size_t rank);
std::vector<int64_t> PermToFirst(size_t rank);

// Returns where dim `axis` of `rank` is when channels are last.
int64_t AxisOfLast(int64_t axis, int64_t rank);

// Returns the channels-last form of `value`, where it was made from one; kNone: it was not.
ValueId WasLast(const Graph& graph, ValueId value);
// Returns the same, turned where it was not.
absl::StatusOr<ValueId> ToLast(Graph& graph, ValueId value);
// `last`, turned, in place of `first`.
absl::Status ReplaceByLast(Graph& graph, ValueId first, ValueId last);

// Rewrites a Concat or Split of planes for planes whose channels lie last.
absl::Status TurnParts(Graph& graph, const Node& node);

}  // namespace reprise
