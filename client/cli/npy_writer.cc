#include "client/cli/npy_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace reprise::cli {
namespace {

// NEP 1: magic and version in 8 bytes, the size of the dictionary in 2, and the dictionary.
constexpr size_t kHeadBytes = 256;
constexpr size_t kFixedBytes = 10;

}  // namespace

NpyWriter::NpyWriter(std::string path, std::string kind, std::vector<int64_t> element_shape)
    : path_(std::move(path)),
      kind_(std::move(kind)),
      shape_(std::move(element_shape)),
      stream_(path_, std::ios::binary | std::ios::trunc) {
  stream_ << Head();
}

std::string NpyWriter::Head() const {
  std::string head("\x93NUMPY\x01\x00", 8);
  const size_t size = kHeadBytes - kFixedBytes;
  head += static_cast<char>(size % 256);
  head += static_cast<char>(size / 256);
  absl::StrAppend(&head, "{'descr': '", kind_, "', 'fortran_order': False, 'shape': (", count_,
                  ", ", absl::StrJoin(shape_, ", "), "), }");
  head.resize(kHeadBytes - 1, ' ');
  return head + '\n';
}

void NpyWriter::Add(absl::Span<const std::byte> elements, int64_t count) {
  stream_.write(reinterpret_cast<const char*>(elements.data()),
                static_cast<std::streamsize>(elements.size()));
  count_ += count;
}

absl::Status NpyWriter::Finish() {
  stream_.seekp(0);
  stream_ << Head();
  stream_.close();
  if (stream_) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat(path_, " cannot be written"));
}

}  // namespace reprise::cli
