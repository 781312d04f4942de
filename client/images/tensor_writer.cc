#include "client/images/tensor_writer.h"

namespace reprise::images {
namespace {

float Channel(const std::vector<double>& numbers, int channel) {
  return static_cast<float>(numbers.size() == 1 ? numbers[0]
                                                : numbers[static_cast<size_t>(channel)]);
}

}  // namespace

TensorWriter::TensorWriter(const TransformList& transforms, ChannelOrder order, int height,
                           int width)
    : is_float_(transforms.makes_tensor()),
      channels_first_(order == ChannelOrder::kAuto ? is_float_ : order == ChannelOrder::kFirst),
      height_(height),
      width_(width) {
  for (int c = 0; c < kChannels; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      float& value = values_[static_cast<size_t>(c)][static_cast<size_t>(byte)];
      value = static_cast<float>(byte) / 255.0f;
      for (const Transform& transform : transforms.transforms()) {
        if (transform.kind != TransformKind::kNormalize) continue;
        value = (value - Channel(transform.mean, c)) / Channel(transform.std, c);
      }
    }
  }
}

template <typename T, typename Map>
void TensorWriter::Write(const uint8_t* pixels, int y, bool flip, T* tensor, const Map& map) const {
  const auto width = static_cast<size_t>(width_);
  const size_t plane = width * static_cast<size_t>(height_);
  const size_t step = channels_first_ ? 1 : kChannels;
  T* to[kChannels];
  for (size_t c = 0; c < kChannels; ++c) {
    T* const row = channels_first_ ? tensor + c * plane + static_cast<size_t>(y) * width
                                   : tensor + static_cast<size_t>(y) * width * kChannels + c;
    to[c] = row;
  }
  for (size_t x = 0; x < width; ++x, pixels += kPixelBytes) {
    const size_t at = (flip ? width - 1 - x : x) * step;
    for (size_t c = 0; c < kChannels; ++c) to[c][at] = map(c, pixels[c]);
  }
}

void TensorWriter::WriteRow(const uint8_t* pixels, int y, bool flip, std::byte* tensor) const {
  if (is_float_) {
    Write(pixels, y, flip, reinterpret_cast<float*>(tensor),
          [this](size_t c, uint8_t byte) { return values_[c][byte]; });
  } else {
    Write(pixels, y, flip, reinterpret_cast<uint8_t*>(tensor),
          [](size_t, uint8_t byte) { return byte; });
  }
}

}  // namespace reprise::images
