// JPEG by libjpeg-turbo. Its errors jump: nothing between setjmp and the end of a decode has a
// destructor; objects that have one are made before.

#include <csetjmp>
#include <cstdio>
// jpeglib.h needs the two above.
#include <jerror.h>
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "client/images/decode.h"

namespace reprise::images {
namespace {

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void Jump(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.format_message(info, errors->text);
  std::longjmp(errors->back, 1);
}

// Warnings about damage that does not end the file are left to the decoder, as Pillow leaves them.
void OnMessage(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) Jump(info);
}

// A file in many scans takes a pass over the whole image for each of them.
constexpr int kMostScans = 100;

void CountScans(j_common_ptr info) {
  const auto* const decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMostScans) return;
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->text, sizeof(errors->text), "it has more than %d scans", kMostScans);
  std::longjmp(errors->back, 1);
}

// Multiplies two bytes as parts of 255, rounded.
uint8_t MulDiv255(int a, int b) {
  const int product = a * b + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

// CMYK as Adobe's programs write it, inverted, four bytes a pixel, becomes RGB in place.
void RgbFromInvertedCmyk(Image& image) {
  for (size_t i = 0; i < image.pixels.size(); i += kPixelBytes) {
    uint8_t* const pixel = image.pixels.data() + i;
    const int white = pixel[3];
    for (int c = 0; c < kChannels; ++c) {
      const int value = white - MulDiv255(255 - pixel[c], white);
      pixel[c] = static_cast<uint8_t>(value < 0 ? 0 : value);
    }
    pixel[3] = 255;
  }
}

// Fills `image`; `is_cmyk` tells the format of its bytes. All locals outlive the jumps.
DecodeOutcome Decompress(jpeg_decompress_struct& info, JpegErrors& errors, absl::string_view bytes,
                         const DecodeLimits& limits, Image& image, bool& is_cmyk,
                         jpeg_progress_mgr& progress) {
  if (setjmp(errors.back) != 0) return DecodeOutcome::kDamaged;
  jpeg_create_decompress(&info);
  info.progress = &progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  if (!CheckPixels(info.image_width, info.image_height, limits).ok())
    return DecodeOutcome::kTooLarge;
  info.out_color_space = is_cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  jpeg_start_decompress(&info);
  image = Image(static_cast<int>(info.output_width), static_cast<int>(info.output_height));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = image.row(static_cast<int>(info.output_scanline));
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return DecodeOutcome::kDecoded;
}

}  // namespace

bool IsJpeg(absl::string_view bytes) {
  return bytes.size() >= 3 && bytes.substr(0, 3) == "\xFF\xD8\xFF";
}

absl::StatusOr<Decoded> DecodeJpeg(absl::string_view bytes, const DecodeLimits& limits) {
  jpeg_decompress_struct info = {};
  JpegErrors errors = {};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = Jump;
  errors.base.emit_message = OnMessage;
  jpeg_progress_mgr progress = {};
  progress.progress_monitor = CountScans;
  Decoded decoded;
  bool is_cmyk = false;
  const DecodeOutcome outcome =
      Decompress(info, errors, bytes, limits, decoded.image, is_cmyk, progress);
  const int64_t width = info.image_width, height = info.image_height;
  jpeg_destroy_decompress(&info);
  switch (outcome) {
    case DecodeOutcome::kTooLarge:
      return CheckPixels(width, height, limits);
    case DecodeOutcome::kDamaged:
      return absl::InvalidArgumentError(absl::StrCat("the JPEG file is damaged: ", errors.text));
    case DecodeOutcome::kDecoded:
      break;
  }
  if (is_cmyk) {
    RgbFromInvertedCmyk(decoded.image);
    decoded.plain_cause = "a JPEG file in CMYK, whose colours are converted one by one";
  }
  return decoded;
}

}  // namespace reprise::images
