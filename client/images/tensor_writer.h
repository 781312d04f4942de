// TensorWriter: rows of pixels -> the elements of a tensor, normalised on the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "client/images/transform.h"

namespace reprise::images {

// Where the channels of an element lie.
enum class ChannelOrder {
  kAuto,   // first for float32, last for uint8
  kFirst,  // [channels, height, width]
  kLast,   // [height, width, channels]
};

class TensorWriter {
 public:
  // Images are `height` x `width` by then.
  TensorWriter(const TransformList& transforms, ChannelOrder order, int height, int width);

  // Writes row `y` of an image to `tensor`, which holds bytes() bytes.
  void WriteRow(const uint8_t* pixels, int y, bool flip, std::byte* tensor) const;

  bool is_float() const { return is_float_; }
  bool channels_first() const { return channels_first_; }
  int height() const { return height_; }
  int width() const { return width_; }
  size_t bytes() const {
    return static_cast<size_t>(height_) * static_cast<size_t>(width_) * kChannels *
           (is_float_ ? sizeof(float) : 1);
  }

 private:
  template <typename T, typename Map>
  void Write(const uint8_t* pixels, int y, bool flip, T* tensor, const Map& map) const;

  const bool is_float_;
  const bool channels_first_;
  const int height_, width_;
  // The value of each byte of each channel.
  std::array<std::array<float, 256>, kChannels> values_;
};

}  // namespace reprise::images
