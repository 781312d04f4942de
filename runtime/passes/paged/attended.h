// Attended: the attentions of a decoder's step that read cached rows, and the facts that pages ask
// of each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/paged/decoder.h"
#include "runtime/passes/paged/mask_facts.h"

namespace reprise {

// All of one attention that pages and masks ask for.
struct Attended {
  int64_t key = 0, value = 0;  // caches
  int64_t heads = 0;
  bool cross = false;
  MaskFacts facts;
};

// Returns the attentions of `graph`, a step that was fused with constant positions, over `keys`
// rows of caches, or `cross_keys` of an encoder's result. Errors: UNIMPLEMENTED naming one that
// pages cannot serve.
absl::StatusOr<std::vector<Attended>> AttendedIn(const Graph& graph, const Decoder& decoder,
                                                 int64_t keys, int64_t cross_keys);

// Returns whether the values added `here` follow the rule of the longest past.
bool SameRule(const MaskFacts& longest, const MaskFacts& here);

}  // namespace reprise
