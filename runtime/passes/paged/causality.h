// CheckCausal: whether a decoder computes the same for several new tokens at once as for one at a
// time.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/paged/decoder.h"
#include "runtime/passes/paged/small_tables.h"

namespace reprise {

// Steps compute each token after those before it. A model whose tokens also see later ones of the
// same request, as one does whose only mask is the request's, computes something else for several
// of them: UNIMPLEMENTED, naming the attention. `attentions`: how many read the caches of the
// decoder's own tokens; where fewer are found, the dependences are not known, which is
// UNIMPLEMENTED as well.
//
// A file that takes one new token at a time has no such requests, and one that has a branch for
// prompts computes several tokens by that.
absl::Status CheckCausal(const Graph& symbolic, const Decoder& decoder,
                         const ParameterValueOf& value_of, int64_t attentions);

}  // namespace reprise
