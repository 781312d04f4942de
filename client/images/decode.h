// DecodeImage: the bytes of a JPEG or PNG file -> pixels, those that Pillow decodes and converts to
// RGB.
//
// Alpha is dropped, grey becomes three equal channels, 16 bits become their upper 8; orientation in
// EXIF is not applied.
//
// Threads: pure. Errors: INVALID_ARGUMENT for another, a damaged or a truncated file;
// RESOURCE_EXHAUSTED for more pixels than `max_pixels`, before any memory is taken for them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/images/image.h"

namespace reprise::images {

struct DecodeLimits {
  int64_t max_pixels = int64_t{128} << 20;
};

struct Decoded {
  Image image;
  // Why the pixels took the plain path already when they were decoded; empty: they did not.
  std::string plain_cause;
};

absl::StatusOr<Decoded> DecodeImage(absl::string_view bytes, const DecodeLimits& limits = {});

// How a decoder ended, told past its longjmp.
enum class DecodeOutcome { kDecoded, kTooLarge, kDamaged };

// Decode the two formats, and tell them.
bool IsJpeg(absl::string_view bytes);
absl::StatusOr<Decoded> DecodeJpeg(absl::string_view bytes, const DecodeLimits& limits);
bool IsPng(absl::string_view bytes);
absl::StatusOr<Decoded> DecodePng(absl::string_view bytes, const DecodeLimits& limits);

// OK where an image of this size may be decoded.
absl::Status CheckPixels(int64_t width, int64_t height, const DecodeLimits& limits);

}  // namespace reprise::images
