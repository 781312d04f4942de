// Models packed and unpacked, as graphs in text form over the inputs below.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/graph.h"

namespace reprise {

// The longest request that a packed graph takes, in tokens.
constexpr int64_t kLongest = 12;

inline constexpr absl::string_view kIds = "input %ids: i64[batch, sequence]\n";
inline constexpr absl::string_view kX = "input %x: f32[batch, sequence, 8]\n";
inline constexpr absl::string_view kMask = "input %mask: i64[batch, sequence]\n";
// The sequence as i64[1].
inline constexpr absl::string_view kLength =
    "const %one0: i64[] = {1}\nconst %zero1: i64[1] = {0}\nconst %one1: i64[1] = {1}\n"
    "%xs: ? = Shape(%x)\n%len0: ? = Gather(%xs, %one0)\n%len: ? = Unsqueeze(%len0, %zero1)\n";

// Returns the graph whose body is `text`.
Graph Symbolic(absl::string_view text);

// It, packed; the pass's error where it cannot be.
absl::StatusOr<Graph> Pack(absl::string_view text);

// Fails unless `text` packs, and every request among others gets the answer that it gets alone.
void ExpectPacks(absl::string_view text);

// Fails unless packing `text` is UNIMPLEMENTED, with a message that holds `why`.
void ExpectRefused(absl::string_view text, absl::string_view why);

}  // namespace reprise
