#include "client/images/file_header.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/images/decode.h"

namespace reprise::images {
namespace {

constexpr int kUpright = 1;
constexpr uint16_t kOrientationTag = 0x0112;
constexpr absl::string_view kExifPrefix("Exif\0\0", 6);

// Numbers of a TIFF structure, whose bytes are in either order.
class Tiff {
 public:
  explicit Tiff(absl::string_view bytes)
      : bytes_(bytes), is_little_(absl::StartsWith(bytes, "II")) {}

  bool Has(size_t at, size_t size) const {
    return at <= bytes_.size() && size <= bytes_.size() - at;
  }
  uint32_t Number(size_t at, size_t size) const {
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t place = is_little_ ? at + size - 1 - i : at + i;
      number = number << 8 | static_cast<unsigned char>(bytes_[place]);
    }
    return number;
  }

 private:
  const absl::string_view bytes_;
  const bool is_little_;
};

int OrientationOfTiff(absl::string_view bytes) {
  const Tiff tiff(bytes);
  constexpr size_t kHeader = 8, kEntry = 12;
  if (!tiff.Has(0, kHeader)) return kUpright;
  const size_t table = tiff.Number(4, 4);
  if (!tiff.Has(table, 2)) return kUpright;
  const size_t entries = tiff.Number(table, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = table + 2 + i * kEntry;
    if (!tiff.Has(at, kEntry)) return kUpright;
    if (tiff.Number(at, 2) != kOrientationTag) continue;
    const uint32_t value = tiff.Number(at + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

uint32_t BigEndian(absl::string_view bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

// Calls `take(marker, segment)` for the segments of a JPEG file in front of its pixels, until it
// returns true.
template <typename Take>
void ForEachSegment(absl::string_view bytes, const Take& take) {
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == '\xFF') {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == 0xFF) {  // filler
      ++at;
      continue;
    }
    constexpr unsigned char kStartOfScan = 0xDA;
    const size_t length = BigEndian(bytes, at + 2, 2);
    if (marker == kStartOfScan || length < 2 || at + 2 + length > bytes.size()) break;
    if (take(marker, bytes.substr(at + 4, length - 2))) return;
    at += 2 + length;
  }
}

int OrientationOfJpeg(absl::string_view bytes) {
  constexpr unsigned char kApp1 = 0xE1;
  int orientation = kUpright;
  ForEachSegment(bytes, [&](unsigned char marker, absl::string_view segment) {
    if (marker != kApp1 || !absl::StartsWith(segment, kExifPrefix)) return false;
    orientation = OrientationOfTiff(segment.substr(kExifPrefix.size()));
    return true;
  });
  return orientation;
}

Size SizeOfJpeg(absl::string_view bytes) {
  Size size;
  ForEachSegment(bytes, [&](unsigned char marker, absl::string_view segment) {
    // Start of a frame, of any kind; the three others in its range are tables.
    const bool is_frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (!is_frame || segment.size() < 5) return false;
    size = {static_cast<int>(BigEndian(segment, 3, 2)), static_cast<int>(BigEndian(segment, 1, 2))};
    return true;
  });
  return size;
}

Size SizeOfPng(absl::string_view bytes) {
  constexpr size_t kWidthAt = 16, kHeightAt = 20, kEnd = 24;
  constexpr uint32_t kMostSide = 1u << 30;
  if (bytes.size() < kEnd) return {};
  const uint32_t width = BigEndian(bytes, kWidthAt, 4), height = BigEndian(bytes, kHeightAt, 4);
  if (width > kMostSide || height > kMostSide) return {};
  return {static_cast<int>(width), static_cast<int>(height)};
}

int OrientationOfPng(absl::string_view bytes) {
  size_t at = 8;
  while (at + 12 <= bytes.size()) {
    const size_t length = BigEndian(bytes, at, 4);
    const absl::string_view type = bytes.substr(at + 4, 4);
    if (length > bytes.size() - at - 12 || type == "IEND") break;
    if (type == "eXIf") return OrientationOfTiff(bytes.substr(at + 8, length));
    at += 12 + length;
  }
  return kUpright;
}

}  // namespace

absl::StatusOr<Size> ToldSize(absl::string_view bytes) {
  const bool is_jpeg = IsJpeg(bytes);
  if (!is_jpeg && !IsPng(bytes)) {
    return absl::InvalidArgumentError("the picture is neither a JPEG nor a PNG file");
  }
  const Size size = is_jpeg ? SizeOfJpeg(bytes) : SizeOfPng(bytes);
  if (size.width > 0 && size.height > 0) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", is_jpeg ? "JPEG" : "PNG", " file is damaged: it has no size"));
}

int OrientationOf(absl::string_view bytes) {
  if (IsJpeg(bytes)) return OrientationOfJpeg(bytes);
  return IsPng(bytes) ? OrientationOfPng(bytes) : kUpright;
}

Image Upright(Image image, int orientation) {
  if (orientation <= kUpright || orientation > 8) return image;
  const bool turns = orientation >= 5;  // rows become columns
  Image upright(turns ? image.height : image.width, turns ? image.width : image.height);
  const int right = image.width - 1, bottom = image.height - 1;
  for (int y = 0; y < upright.height; ++y) {
    for (int x = 0; x < upright.width; ++x) {
      int from_x = turns ? y : x, from_y = turns ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) {
        from_x = right - from_x;
      }
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) {
        from_y = bottom - from_y;
      }
      std::memcpy(upright.row(y) + static_cast<size_t>(x) * kPixelBytes,
                  image.row(from_y) + static_cast<size_t>(from_x) * kPixelBytes, kPixelBytes);
    }
  }
  return upright;
}

}  // namespace reprise::images
