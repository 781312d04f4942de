// GgufFile: the contents of a GGUF file: members of metadata by name, and where its tensors lie.
//
// The format is described in ggml's `docs/gguf.md`, versions 2 and 3, little-endian:
//   "GGUF", version u32, number of tensors u64, number of members u64;
//   each member: key, type u32, value; a text is its length u64 and its bytes; a list is the type
//   of
//     its elements u32, their number u64, the elements;
//   each tensor: name, number of dims u32, dims u64 (the first is the innermost), type u32, offset
//     u64 from where the data begins;
//   filled up to the alignment (member general.alignment, else 32), the data.
// A model may lie in several files, NAME-00001-of-0000N.gguf; the first of them names it.
//
// Nothing of a file is trusted: counts are checked against the bytes that are left before anything
// is allocated, sums for overflow, ranges against the file.
//
// Ownership: views point into mappings that it shares. Threads: immutable.
// Errors: INVALID_ARGUMENT for a broken file, UNIMPLEMENTED for an unsupported one; both name
// the
//   file and the culprit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/onnx/file/file_bytes.h"

namespace reprise {

// A member's value. Lists of numbers are widened; views point into the file.
using GgufValue = std::variant<int64_t, double, bool, absl::string_view, std::vector<int64_t>,
                               std::vector<double>, std::vector<absl::string_view>>;

struct GgufTensor {
  std::vector<int64_t> dims;  // the outermost first: rows, columns
  int64_t type = 0;
  int64_t offset = 0;  // counted from where its file begins
  int64_t bytes = 0;
  size_t file = 0;  // which of GgufFile::files()
};

// A type of elements: floats are blocks of one.
struct GgufType {
  absl::string_view name;  // "Q4_K"
  int64_t numbers = 1;     // a block has that many
  int64_t bytes = 0;       // a block takes these
};
// Returns nullopt where no tensor of it can be read.
std::optional<GgufType> FindGgufType(int64_t type);
// " (Q2_K)" for types of ggml that cannot be read; empty for numbers that stand for none.
std::string GgufTypeName(int64_t type);

class GgufFile {
 public:
  struct Part {
    std::string name;  // the file's, without its folder
    FileBytes bytes;
  };

  // Returns whether `bytes` begin like such a file.
  static bool Begins(absl::string_view bytes);
  // Returns whether the file at `path` does; false where it cannot be read.
  static bool IsOne(const std::string& path);

  // Reads the model at `path`, whose bytes are `file`; other parts are read from the same folder.
  static absl::StatusOr<GgufFile> Read(const std::string& path, FileBytes file);
  static absl::StatusOr<GgufFile> Open(const std::string& path);

  const std::vector<Part>& files() const { return files_; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }
  const GgufTensor* Tensor(absl::string_view name) const;

  // Returns nullptr where there is no such member.
  const GgufValue* Find(absl::string_view key) const;
  // Return nothing where there is no such member; INVALID_ARGUMENT where it has another type.
  absl::StatusOr<std::optional<int64_t>> Int(absl::string_view key) const;
  absl::StatusOr<std::optional<double>> Number(absl::string_view key) const;
  absl::StatusOr<std::optional<bool>> Bool(absl::string_view key) const;
  absl::StatusOr<std::optional<std::string>> Text(absl::string_view key) const;
  // Returns an empty list where there is no such member.
  absl::StatusOr<std::vector<absl::string_view>> Texts(absl::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view key) const;

 private:
  friend class GgufReader;

  std::vector<Part> files_;
  std::map<std::string, GgufValue, std::less<>> members_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace reprise
