// DecoderRules: what stands beside a model's files about how its answers begin and end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace reprise {

struct DecoderRules {
  // Ids in front of the first new token of a decoder whose prompt goes to an encoder.
  std::vector<int64_t> start;
  // The id that token number i of an answer is, whatever its scores say.
  std::map<int64_t, int64_t> forced;
  // The id that ends an answer of max_tokens.
  std::optional<int64_t> forced_last;
  // Ids that are never drawn, and those that are not drawn as the first token that is not forced.
  std::vector<int64_t> suppressed;
  std::vector<int64_t> suppressed_first;

  // The id that token number `token` of an answer of at most `most` tokens must be.
  std::optional<int64_t> ForcedAt(int64_t token, int64_t most) const {
    if (const auto found = forced.find(token); found != forced.end()) return found->second;
    if (token + 1 == most) return forced_last;
    return std::nullopt;
  }
  // The first token of an answer that is not forced.
  int64_t FirstFree() const { return forced.empty() ? 0 : forced.rbegin()->first + 1; }
};

}  // namespace reprise
