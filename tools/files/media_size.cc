#include "tools/files/media_size.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "tools/files/file_bytes.h"

namespace reprise::cli {
namespace {

// Pictures may carry their previews and colours in front of their size.
constexpr size_t kMostHead = size_t{1} << 20;

using MediaSize = std::optional<std::vector<int64_t>>;

uint64_t Big(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// Chunks: four letters, a size, the bytes, one more where that is odd.
absl::StatusOr<MediaSize> WavSize(absl::string_view head, int64_t file_bytes,
                                  const std::string& name) {
  uint64_t frame_bytes = 0;
  for (size_t at = 12; at + 8 <= head.size();) {
    const absl::string_view kind = head.substr(at, 4);
    const uint64_t size = LittleEndian(head.substr(at + 4, 4));
    if (kind == "fmt " && at + 24 <= head.size())
      frame_bytes = LittleEndian(head.substr(at + 20, 2));
    if (kind == "data") {
      if (frame_bytes == 0) break;
      // A writer that did not know the size at its beginning wrote the largest one.
      const uint64_t left = static_cast<uint64_t>(file_bytes) - at - 8;
      return MediaSize(
          std::vector<int64_t>{static_cast<int64_t>(std::min(size, left) / frame_bytes)});
    }
    at += 8 + size + size % 2;
  }
  return BadFile(name, "is a WAV file without a format and data");
}

// Segments: 0xFF, a marker, a size that counts its own two bytes. A frame header has the size.
absl::StatusOr<MediaSize> JpegSize(absl::string_view head, const std::string& name) {
  for (size_t at = 2; at + 4 <= head.size();) {
    if (static_cast<uint8_t>(head[at]) != 0xFF) break;
    const auto marker = static_cast<uint8_t>(head[at + 1]);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // they have no size
      at += 2;
      continue;
    }
    // SOF0 to SOF15, but the tables of Huffman codes and arithmetic and the extension among them.
    const bool frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame && at + 9 <= head.size()) {
      return MediaSize(std::vector<int64_t>{static_cast<int64_t>(Big(head.substr(at + 5, 2))),
                                            static_cast<int64_t>(Big(head.substr(at + 7, 2)))});
    }
    at += 2 + Big(head.substr(at + 2, 2));
  }
  return BadFile(name, "is a JPEG file without a frame header");
}

}  // namespace

absl::StatusOr<MediaSize> ParseMediaSize(absl::string_view head, int64_t file_bytes,
                                         const std::string& name) {
  constexpr absl::string_view kPng("\x89PNG\r\n\x1a\n", 8);
  if (absl::StartsWith(head, "RIFF") && head.size() >= 12 && head.substr(8, 4) == "WAVE") {
    return WavSize(head, file_bytes, name);
  }
  if (absl::StartsWith(head, kPng)) {
    if (head.size() < 24) return BadFile(name, "is a PNG file that is cut short");
    return MediaSize(std::vector<int64_t>{static_cast<int64_t>(Big(head.substr(20, 4))),
                                          static_cast<int64_t>(Big(head.substr(16, 4)))});
  }
  if (head.size() >= 3 && absl::StartsWith(head, "\xFF\xD8\xFF")) return JpegSize(head, name);
  return MediaSize();
}

absl::StatusOr<MediaSize> MediaSizeOf(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (file == nullptr || error) return BadFile(path, "cannot be read");
  std::string head(std::min<size_t>(kMostHead, bytes), '\0');
  head.resize(std::fread(head.data(), 1, head.size(), file.get()));
  return ParseMediaSize(head, static_cast<int64_t>(bytes), path);
}

}  // namespace reprise::cli
