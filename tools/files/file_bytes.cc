#include "tools/files/file_bytes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace reprise::cli {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    return absl::NotFoundError(absl::StrCat("cannot read '", path, "': it is a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  return text;
}

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

absl::Status BadFile(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' ", what));
}

}  // namespace reprise::cli
