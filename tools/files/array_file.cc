#include "tools/files/array_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/recipe/record_file.h"
#include "tools/files/file_bytes.h"

namespace reprise::cli {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

// Returns the value of `key` in the header's dictionary, up to the next key: "'<i8'", "(3, 4)".
absl::string_view Field(absl::string_view header, absl::string_view key) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  if (at == absl::string_view::npos) return "";
  absl::string_view value = absl::StripAsciiWhitespace(header.substr(at + key.size() + 3));
  const size_t end = absl::StartsWith(value, "(") ? value.find(')') + 1 : value.find(',');
  return absl::StripAsciiWhitespace(value.substr(0, end));
}

// Reads the numbers of one whole-number type at `data`; false for another type.
bool ReadIntegers(absl::string_view type, absl::string_view data, size_t count,
                  std::vector<int64_t>& integers) {
  if (type.size() != 3 || (type[0] != '<' && type[0] != '|') ||
      (type[1] != 'i' && type[1] != 'u')) {
    return false;
  }
  const size_t bytes = static_cast<size_t>(type[2] - '0');
  if (bytes == 0 || bytes > 8 || data.size() / bytes < count) return false;
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = LittleEndian(data.substr(i * bytes, bytes));
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes);
    integers.push_back(type[1] == 'i' ? static_cast<int64_t>(value << unused) >> unused
                                      : static_cast<int64_t>(value));
  }
  return true;
}

absl::StatusOr<std::string> Inflate(absl::string_view packed, size_t size,
                                    const std::string& name) {
  std::string bytes(size, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return BadFile(name, "cannot be unpacked");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (result != Z_STREAM_END || stream.avail_out != 0) return BadFile(name, "is damaged");
  return bytes;
}

// Returns the entries of a zip archive, by its directory at the end.
absl::StatusOr<std::vector<ArrayFile>> ReadArchive(absl::string_view file,
                                                   const std::string& path) {
  constexpr absl::string_view kEnd("PK\x05\x06", 4), kEntry("PK\x01\x02", 4);
  const size_t end = file.rfind(kEnd);
  if (end == absl::string_view::npos || file.size() - end < 22) {
    return BadFile(path, "is not an archive of arrays");
  }
  const uint64_t entries = LittleEndian(file.substr(end + 10, 2));
  size_t at = LittleEndian(file.substr(end + 16, 4));
  std::vector<ArrayFile> arrays;
  for (uint64_t i = 0; i < entries; ++i) {
    if (at > file.size() || file.size() - at < 46 || file.substr(at, 4) != kEntry) {
      return BadFile(path, "has a damaged directory");
    }
    const uint64_t method = LittleEndian(file.substr(at + 10, 2));
    const uint64_t packed_size = LittleEndian(file.substr(at + 20, 4));
    const uint64_t size = LittleEndian(file.substr(at + 24, 4));
    const size_t name_size = LittleEndian(file.substr(at + 28, 2));
    const size_t more =
        LittleEndian(file.substr(at + 30, 2)) + LittleEndian(file.substr(at + 32, 2));
    const size_t local = LittleEndian(file.substr(at + 42, 4));
    std::string name(file.substr(at + 46, name_size));
    at += 46 + name_size + more;
    if (local > file.size() || file.size() - local < 30)
      return BadFile(path, "has a damaged entry");
    const size_t data = local + 30 + LittleEndian(file.substr(local + 26, 2)) +
                        LittleEndian(file.substr(local + 28, 2));
    if (data > file.size() || packed_size > file.size() - data || size > kMostFileBytes) {
      return BadFile(path, absl::StrCat("has a damaged entry '", name, "'"));
    }
    const absl::string_view packed = file.substr(data, packed_size);
    std::string bytes(packed);
    if (method == 8) {
      ASSIGN_OR_RETURN(bytes, Inflate(packed, size, absl::StrCat(path, "#", name)));
    } else if (method != 0) {
      return BadFile(path, absl::StrCat("has an entry '", name, "' packed by method ", method));
    }
    ASSIGN_OR_RETURN(ArrayFile array, ParseArray(bytes, absl::StrCat(path, "#", name)));
    array.name = std::string(absl::StripSuffix(name, ".npy"));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

absl::StatusOr<ArrayFile> ParseArray(absl::string_view bytes, const std::string& name) {
  if (!absl::StartsWith(bytes, kMagic) || bytes.size() < 12)
    return BadFile(name, "is not an array");
  const size_t length_bytes = bytes[6] == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  const uint64_t length = LittleEndian(bytes.substr(8, length_bytes));
  if (length > bytes.size() - begin) return BadFile(name, "has a header that is cut short");
  const absl::string_view header = bytes.substr(begin, length);
  ArrayFile array = {.name = name};
  absl::string_view shape = Field(header, "shape");
  if (!absl::ConsumePrefix(&shape, "(") || !absl::ConsumeSuffix(&shape, ")")) {
    return BadFile(name, "has a header without a shape");
  }
  int64_t elements = 1;
  for (const absl::string_view part : absl::StrSplit(shape, ',')) {
    if (absl::StripAsciiWhitespace(part).empty()) continue;  // the comma of (3,) ends a part
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 0 || size > kMostFileBytes) {
      return BadFile(name, absl::StrCat("has a shape (", shape, ")"));
    }
    array.shape.push_back(size);
    elements = std::min<int64_t>(kMostFileBytes, elements * std::max<int64_t>(size, 1));
  }
  absl::string_view type = Field(header, "descr");
  absl::ConsumePrefix(&type, "'");
  absl::ConsumeSuffix(&type, "'");
  if (array.shape.size() == 1) {
    ReadIntegers(type, bytes.substr(begin + length), static_cast<size_t>(array.shape[0]),
                 array.integers);
  }
  const absl::string_view data = bytes.substr(begin + length);
  const auto wanted = static_cast<uint64_t>(elements) * sizeof(float);
  if (type == "<f4" && absl::StartsWith(Field(header, "fortran_order"), "False") &&
      data.size() >= wanted) {
    array.floats = std::string(data.substr(0, wanted));
  }
  return array;
}

absl::StatusOr<std::vector<ArrayFile>> ReadArrays(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostFileBytes));
  if (absl::StartsWith(bytes, "PK")) return ReadArchive(bytes, path);
  ASSIGN_OR_RETURN(ArrayFile array, ParseArray(bytes, path));
  array.name = std::filesystem::path(path).stem().string();
  return std::vector<ArrayFile>{std::move(array)};
}

}  // namespace reprise::cli
