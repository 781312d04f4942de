#include "client/images/color.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace reprise::images {
namespace {

uint8_t Clip(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

// Grey by ITU-R 601, in parts of 2^16.
uint8_t GreyOf(const uint8_t* pixel) {
  return static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >>
                              16);
}

uint8_t Blend(int plain, int value, float factor) {
  const float mixed = static_cast<float>(plain) + factor * static_cast<float>(value - plain);
  if (mixed <= 0.0f) return 0;
  return mixed >= 255.0f ? 255 : static_cast<uint8_t>(mixed);
}

// `plain(pixel)` is the value that each channel is blended with.
template <typename Plain>
void BlendAll(Image& image, float factor, Plain plain) {
  for (size_t i = 0; i < image.pixels.size(); i += kPixelBytes) {
    uint8_t* const pixel = image.pixels.data() + i;
    const int other = plain(pixel);
    for (int c = 0; c < kChannels; ++c) pixel[c] = Blend(other, pixel[c], factor);
  }
}

// Hue, saturation and value, each of 0 to 255.
struct Hsv {
  uint8_t hue = 0, saturation = 0, value = 0;
};

Hsv HsvOf(const uint8_t* pixel) {
  const int red = pixel[0], green = pixel[1], blue = pixel[2];
  const int most = std::max({red, green, blue}), least = std::min({red, green, blue});
  if (most == least) return {0, 0, static_cast<uint8_t>(most)};
  const float span = static_cast<float>(most - least);
  const float r = static_cast<float>(most - red) / span;
  const float g = static_cast<float>(most - green) / span;
  const float b = static_cast<float>(most - blue) / span;
  float hue = 0;
  if (red == most) {
    hue = b - g;
  } else if (green == most) {
    hue = static_cast<float>(2.0 + r - b);
  } else {
    hue = static_cast<float>(4.0 + g - r);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {Clip(static_cast<int>(hue * 255.0)),
          Clip(static_cast<int>(span / static_cast<float>(most) * 255.0)),
          static_cast<uint8_t>(most)};
}

void SetHsv(const Hsv& hsv, uint8_t* pixel) {
  const auto set = [&](int red, int green, int blue) {
    pixel[0] = Clip(red);
    pixel[1] = Clip(green);
    pixel[2] = Clip(blue);
  };
  const int v = hsv.value;
  if (hsv.saturation == 0) return set(v, v, v);
  const float sixth = static_cast<float>(hsv.hue) * 6.0f / 255.0f;
  const int side = static_cast<int>(std::floor(sixth));
  const float along = sixth - static_cast<float>(side);
  const float saturation = static_cast<float>(hsv.saturation) / 255.0f;
  const auto scaled = [v](double part) { return static_cast<int>(std::round(v * part)); };
  const int p = scaled(1.0 - saturation);
  const int q = scaled(1.0 - saturation * along);
  const int t = scaled(1.0 - saturation * (1.0 - along));
  switch (side % 6) {
    case 0:
      return set(v, t, p);
    case 1:
      return set(q, v, p);
    case 2:
      return set(p, v, t);
    case 3:
      return set(p, q, v);
    case 4:
      return set(t, p, v);
    default:
      return set(v, p, q);
  }
}

}  // namespace

void AdjustBrightness(Image& image, float factor) {
  BlendAll(image, factor, [](const uint8_t*) { return 0; });
}

void AdjustContrast(Image& image, float factor) {
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += kPixelBytes) {
    sum += GreyOf(image.pixels.data() + i);
  }
  const auto pixels = static_cast<int64_t>(image.pixels.size()) / kPixelBytes;
  const int mean = static_cast<int>(
      static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, pixels)) + 0.5);
  BlendAll(image, factor, [mean](const uint8_t*) { return mean; });
}

void AdjustSaturation(Image& image, float factor) {
  BlendAll(image, factor, [](const uint8_t* pixel) { return int{GreyOf(pixel)}; });
}

void AdjustHue(Image& image, float turn) {
  const auto added = static_cast<uint8_t>(static_cast<int>(turn * 255));
  for (size_t i = 0; i < image.pixels.size(); i += kPixelBytes) {
    Hsv hsv = HsvOf(image.pixels.data() + i);
    hsv.hue = static_cast<uint8_t>(hsv.hue + added);
    SetHsv(hsv, image.pixels.data() + i);
  }
}

}  // namespace reprise::images
