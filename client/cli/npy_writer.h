// NpyWriter: elements of one shape -> a file of NumPy's format .npy, whose first dim is their
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace reprise::cli {

class NpyWriter {
 public:
  // `kind` is NumPy's word for the type: "<f4", "|u1".
  NpyWriter(std::string path, std::string kind, std::vector<int64_t> element_shape);

  void Add(absl::Span<const std::byte> elements, int64_t count);
  // Writes the number of elements into the head of the file. UNKNOWN where it cannot be written.
  absl::Status Finish();

 private:
  std::string Head() const;

  const std::string path_, kind_;
  const std::vector<int64_t> shape_;
  std::ofstream stream_;
  int64_t count_ = 0;
};

}  // namespace reprise::cli
