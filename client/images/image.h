// Image: decoded pixels, and a view of a rectangle of them.
//
// A pixel is four bytes, red, green, blue and one that nothing reads, so that a vector register
// holds one. Rows follow each other without a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::images {

inline constexpr int kPixelBytes = 4;
inline constexpr int kChannels = 3;

struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 4]

  Image() = default;
  Image(int width, int height)
      : width(width),
        height(height),
        pixels(static_cast<size_t>(width) * static_cast<size_t>(height) * kPixelBytes) {}
  uint8_t* row(int y) { return pixels.data() + static_cast<size_t>(y) * stride(); }
  const uint8_t* row(int y) const { return pixels.data() + static_cast<size_t>(y) * stride(); }
  size_t stride() const { return static_cast<size_t>(width) * kPixelBytes; }
};

// A rectangle, in pixels.
struct Rect {
  int x = 0, y = 0, width = 0, height = 0;
};

// Part of an image, which outlives it.
struct ImageView {
  const uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  size_t stride = 0;  // bytes from a row to the next

  const uint8_t* row(int y) const { return pixels + static_cast<size_t>(y) * stride; }
};

inline ImageView ViewOf(const Image& image, const Rect& rect) {
  return {.pixels = image.row(rect.y) + static_cast<size_t>(rect.x) * kPixelBytes,
          .width = rect.width,
          .height = rect.height,
          .stride = image.stride()};
}
inline ImageView ViewOf(const Image& image) {
  return ViewOf(image, {0, 0, image.width, image.height});
}

}  // namespace reprise::images
