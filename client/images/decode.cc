#include "client/images/decode.h"

#include "absl/strings/str_cat.h"

namespace reprise::images {

absl::Status CheckPixels(int64_t width, int64_t height, const DecodeLimits& limits) {
  if (width <= 0 || height <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("the image is ", width, " x ", height));
  }
  if (width <= limits.max_pixels / height) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the image is ", width, " x ", height, ", the limit is ", limits.max_pixels, " pixels"));
}

absl::StatusOr<Decoded> DecodeImage(absl::string_view bytes, const DecodeLimits& limits) {
  if (IsJpeg(bytes)) return DecodeJpeg(bytes, limits);
  if (IsPng(bytes)) return DecodePng(bytes, limits);
  return absl::InvalidArgumentError("it is neither a JPEG nor a PNG file");
}

}  // namespace reprise::images
