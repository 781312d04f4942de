// PNG by libpng. Its errors jump: nothing between setjmp and the end of a decode has a destructor;
// objects that have one are made before.

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/images/decode.h"

namespace reprise::images {
namespace {

constexpr absl::string_view kSignature("\x89PNG\r\n\x1a\n", 8);

struct PngSource {
  absl::string_view left;
  char error[160] = "";
};

[[noreturn]] void OnError(png_structp png, png_const_charp text) {
  auto* const source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::snprintf(source->error, sizeof(source->error), "%s", text);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void ReadBytes(png_structp png, png_bytep to, size_t size) {
  auto* const source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (size > source->left.size()) png_error(png, "the file ends too early");
  std::memcpy(to, source->left.data(), size);
  source->left.remove_prefix(size);
}

// Fills `image` with red, green, blue and a filler, whatever the file holds.
DecodeOutcome Decompress(png_structp png, png_infop info, PngSource& source,
                         const DecodeLimits& limits, Image& image, int64_t& width, int64_t& height,
                         std::vector<png_bytep>& rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return DecodeOutcome::kDamaged;
  png_set_read_fn(png, &source, ReadBytes);
  // Chunks besides the pixels may be as large as they like: they are not kept.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  width = png_get_image_width(png, info);
  height = png_get_image_height(png, info);
  if (!CheckPixels(width, height, limits).ok()) return DecodeOutcome::kTooLarge;
  const int color = png_get_color_type(png, info);
  png_set_strip_16(png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (color == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) < 8) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  if ((color & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(png);
  png_set_filler(png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  image = Image(static_cast<int>(width), static_cast<int>(height));
  if (png_get_rowbytes(png, info) != image.stride())
    png_error(png, "its rows are of no known form");
  rows.resize(static_cast<size_t>(height));
  for (int y = 0; y < image.height; ++y) rows[static_cast<size_t>(y)] = image.row(y);
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  return DecodeOutcome::kDecoded;
}

}  // namespace

bool IsPng(absl::string_view bytes) {
  return bytes.substr(0, std::min(bytes.size(), kSignature.size())) == kSignature;
}

absl::StatusOr<Decoded> DecodePng(absl::string_view bytes, const DecodeLimits& limits) {
  PngSource source = {.left = bytes};
  Decoded decoded;
  std::vector<png_bytep> rows;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("libpng has no memory");
  }
  int64_t width = 0, height = 0;
  const DecodeOutcome outcome =
      Decompress(png, info, source, limits, decoded.image, width, height, rows);
  png_destroy_read_struct(&png, &info, nullptr);
  switch (outcome) {
    case DecodeOutcome::kTooLarge:
      return CheckPixels(width, height, limits);
    case DecodeOutcome::kDamaged:
      return absl::InvalidArgumentError(absl::StrCat("the PNG file is damaged: ", source.error));
    case DecodeOutcome::kDecoded:
      break;
  }
  return decoded;
}

}  // namespace reprise::images
