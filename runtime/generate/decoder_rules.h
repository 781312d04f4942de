// DecoderRules: how a decoder's answers begin and end, from the files next to the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace reprise {

struct DecoderRules {
  // Ids in front of the first new token of a decoder whose prompt goes to an encoder.
  std::vector<int64_t> start;
  // The id at a place of the decoder's sequence, whatever its scores say. Places are counted from 0
  // with the ids in front of the first new token, the client's where it gives these: where it has
  // given a place, nothing is left to force there.
  std::map<int64_t, int64_t> forced;
  // The id that ends an answer of max_tokens.
  std::optional<int64_t> forced_last;
  // Ids that are never drawn, and those that are not drawn as the first token that is not forced.
  std::vector<int64_t> suppressed;
  std::vector<int64_t> suppressed_first;

  // Returns the id at `place`, where `left` tokens may follow those before it.
  std::optional<int64_t> ForcedAt(int64_t place, int64_t left) const {
    if (const auto found = forced.find(place); found != forced.end()) return found->second;
    if (left == 1) return forced_last;
    return std::nullopt;
  }
  // Returns the first place that is not forced of a sequence that begins with `given` ids.
  int64_t FirstFree(int64_t given) const {
    return forced.empty() ? given : std::max(given, forced.rbegin()->first + 1);
  }
};

}  // namespace reprise
