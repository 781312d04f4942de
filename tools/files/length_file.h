// Lengths and shapes in files: the input of `plan` and `dynamicity`.
//
// Text: a length a line; empty lines and lines that begin with '#' are skipped. CSV (the name ends
// in .csv, or a line has a comma): a header names the columns; `length` (or `sequence`, `tokens`,
// `len`) is taken, else the first; a column `count` says how often. Without a header the first
// column are lengths and a second one counts. Shapes: as text `2x128`, or as CSV one column each
// input with such shapes, or one column each axis with sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::cli {

// Returns each length as often as the file says, in its order. INVALID_ARGUMENT with file and line;
// NOT_FOUND for a file that cannot be read.
absl::StatusOr<std::vector<int64_t>> ReadLengths(const std::string& path);

// Returns the same of a text; `name` is for errors.
absl::StatusOr<std::vector<int64_t>> ParseLengths(absl::string_view text, absl::string_view name);

// Shapes by input, as they came.
struct ShapeColumns {
  std::vector<std::string> inputs;
  std::vector<std::vector<std::vector<int64_t>>> rows;  // request, input, dim
  std::vector<double> counts;                           // one a request
};
absl::StatusOr<ShapeColumns> ReadShapes(const std::string& path);
absl::StatusOr<ShapeColumns> ParseShapes(absl::string_view text, absl::string_view name);

}  // namespace reprise::cli
