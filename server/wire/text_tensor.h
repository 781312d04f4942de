// Tensors of text, between the protocol's bytes and places (see graph/vocabulary.h).
//
// The bytes, as BYTES tensors travel: each element row by row, its length in four bytes
// (little-endian) and then its bytes, which need not be UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/vocabulary.h"

namespace reprise {

// Returns the places of the `elements` texts in `bytes`, as `places`; `texts` keeps views of
// `bytes`. Takes memory for the bytes that are there, never for a claimed number. INVALID_ARGUMENT,
// naming the element and both numbers, where a length leaves the bytes, or where there are fewer or
// more of them.
absl::Status DecodeTexts(absl::string_view bytes, int64_t elements, RequestTexts& texts,
                         std::vector<int64_t>& places);

// Returns the `elements` texts in `bytes` as views of it. The same errors, after the input's name.
absl::StatusOr<std::vector<absl::string_view>> TextsOfInput(absl::string_view name,
                                                            absl::string_view bytes,
                                                            int64_t elements);

// Replaces `bytes`, places of int64, by their texts. RESOURCE_EXHAUSTED where they take more
// than `most` bytes, which is known before any is written; INTERNAL for an invalid place.
absl::Status EncodeTexts(const RequestTexts& texts, int64_t most, std::string& bytes);

}  // namespace reprise
