// Packed gather and scatter: rows of requests as segments of a frame, end to end.
//
// A packed recipe has the model's inputs, then the position of each token in its segment, then
// where each segment begins, then perhaps where each request does (passes/pack/pack_tokens.h). A
// value of it is one element a token or one a segment, along dim 0.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/types/span.h"
#include "runtime/engine/types/request.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// One request of a packed batch.
struct PackedPart {
  const Request* request = nullptr;
  int64_t rows = 0;    // one segment each
  int64_t length = 0;  // tokens of a row
};

// Writes the parts into `inputs`, which hold `recipe`'s; `positions[i]`: which of a request's
// inputs is input i of the recipe. With `only` the others' tokens are zeros. Tokens after the last
// segment are zeros.
void GatherPacked(const Recipe& recipe, absl::Span<const int> positions,
                  absl::Span<const PackedPart> parts, std::optional<size_t> only,
                  std::byte* inputs);

// Writes the bounds of segments and requests again, as of `parts` alone: tokens that were gathered
// after them belong to no request.
void WriteBounds(const Recipe& recipe, absl::Span<const PackedPart> parts, std::byte* inputs);

// Returns the shape of output `position` for one part: [rows, length, ...] or [rows, ...].
Shape PackedShape(const Recipe& recipe, size_t position, const PackedPart& part);
// Returns part `part` of output `position`, which lies at `output`.
OutputTensor ReadPacked(const Recipe& recipe, size_t position, absl::Span<const PackedPart> parts,
                        size_t part, const std::byte* output);

// Writes inputs for priming: zeros, and one segment of `tokens`.
void PrimePacked(const Recipe& recipe, int64_t tokens, std::byte* inputs);

}  // namespace reprise
