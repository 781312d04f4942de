// JSON that answers are made of, written straight into one text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

// Appends `text` in quotes, escaped; invalid UTF-8 becomes U+FFFD.
void AppendQuoted(absl::string_view text, std::string& json);
std::string Quoted(absl::string_view text);

// Appends the shortest text that reads back as the same float32; null for numbers that JSON has
// not.
void AppendNumber(float value, std::string& json);
// "[0.5,1]"
void AppendNumbers(absl::Span<const float> values, std::string& json);

// "[[0.5,1],[2,3]]": `rows` of them, one after another in `values`.
void AppendRows(absl::Span<const float> values, int64_t rows, std::string& json);

// The little-endian bytes of the values as base64, quoted.
void AppendBase64(absl::Span<const float> values, std::string& json);

}  // namespace reprise
