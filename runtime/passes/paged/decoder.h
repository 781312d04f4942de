// Decoder: the roles of the inputs and outputs of a model with a cache of keys and values.
//
// A decoder is known by its graph: inputs of floats [batch, heads, past, size], an input of token
// ids, and an output with a row of scores for each token. Its other inputs (a mask of ones, the
// positions of its tokens, lengths) are told by dtype and dims, and by name where these leave a
// choice. Names alone tell the caches of an encoder's result from the caches of the decoder's own
// tokens: exporters write "encoder" or "cross" into them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/node.h"

namespace reprise {

struct DecoderCache {
  std::string input;  // its name
  int64_t heads = 0;
  int64_t size = 0;    // elements of a head
  bool cross = false;  // holds an encoder's result, the same for all tokens of a sequence
};

struct Decoder {
  std::string ids;           // [batch, tokens]
  std::string positions;     // [batch, tokens]; empty: there is none
  std::string mask;          // [batch, past + tokens]; empty: there is none
  std::string last_keys;     // [batch]: keys of each row but one (GroupQueryAttention's seqlens_k)
  std::string length;        // one number: keys of the longest row
  std::string cache_branch;  // a bool: whether the cache is read
  std::string place;         // [tokens]: positions of new tokens, the same in each row
  std::string states;        // floats [batch, places, width]: an encoder's result
  std::string states_mask;   // [batch, places]: which of them there are
  std::vector<DecoderCache> caches;
  size_t logits = 0;  // position among the outputs
};

// Returns whether `name`, of a cache, names an encoder's result.
bool IsCrossName(absl::string_view name);

// NOT_FOUND where the model has no cache at all; UNIMPLEMENTED naming the input or output that has
// no known part in a decoder. `outputs`: names of the graph's outputs, in order.
absl::StatusOr<Decoder> FindDecoder(const Graph& symbolic, const std::vector<std::string>& outputs);

}  // namespace reprise
