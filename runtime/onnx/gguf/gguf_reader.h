// GgufReader: the walk over the bytes of one GGUF file. See gguf_file.h.
//
// Ownership: borrows the bytes. Threads: one caller.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/onnx/gguf/gguf_file.h"

namespace reprise {

class GgufReader {
 public:
  // `file`: which of the model's files this is.
  GgufReader(absl::string_view bytes, size_t file) : bytes_(bytes), file_(file) {}

  // Adds tensors and members to `model`. Later files of a model replace members of earlier ones
  // only where these tell about the file itself, as "split.no" does.
  absl::Status ReadInto(GgufFile& model);

 private:
  absl::Status ReadHeader(int64_t& tensors, int64_t& members);
  absl::Status ReadMember(GgufFile& model);
  absl::Status ReadTensor(GgufFile& model);
  // Moves tensors of this file to where its data begins, and checks their ranges.
  absl::Status PlaceTensors(GgufFile& model);

  absl::StatusOr<GgufValue> ReadValue(uint32_t type);
  absl::StatusOr<GgufValue> ReadList();
  absl::StatusOr<absl::string_view> ReadText();
  // Returns the next `bytes` bytes.
  absl::StatusOr<absl::string_view> Take(uint64_t bytes);
  template <typename T>
  absl::StatusOr<T> Number();

  const absl::string_view bytes_;
  const size_t file_;
  size_t at_ = 0;
  int64_t alignment_ = 32;
};

}  // namespace reprise
