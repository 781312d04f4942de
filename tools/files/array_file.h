// ArrayFile: the arrays of NumPy's files: shapes, the elements of lists of whole numbers, and
// float32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise::cli {

struct ArrayFile {
  std::string name;  // as in the archive, without ".npy"; else the file's
  std::vector<int64_t> shape;
  std::vector<int64_t> integers;  // empty except for an array with one dim of an integer type
  std::string floats;             // bytes, row-major; empty except for float32
};

// Returns the arrays of a .npy or .npz file, in the order of the file. Format of the first: NEP 1;
// of the second: an archive of the zip format, stored or deflated. INVALID_ARGUMENT names the file.
absl::StatusOr<std::vector<ArrayFile>> ReadArrays(const std::string& path);

// Reads one array from its bytes; `name` is for errors.
absl::StatusOr<ArrayFile> ParseArray(absl::string_view bytes, const std::string& name);

}  // namespace reprise::cli
