// Depthwise convolutions of NHWC bytes by signed bytes, into bytes: four taps of a window's column
// at a time. Their bytes are gathered into words, once for all windows that see the column, and
// multiplied like the words of products.
//
// Channels go by blocks, the widest first; the last block may reach back over channels of the one
// before. Everything that has an entry per channel lies by blocks (weights, sums, scales, bias),
// and within a block in the packing order of bytes: four channels of each 16, then the next four.
//
// Threads: pure.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/int8/requantize_bounds.h"

namespace reprise::cpu {

inline constexpr int64_t kFewestBlockChannels = 16;

// Calls block(first channel, channels) for each; `widest` is a power of two.
template <class Block>
void ForByteBlocks(int64_t channels, int64_t widest, const Block& block) {
  int64_t at = 0;
  for (int64_t width = widest; width >= kFewestBlockChannels; width /= 2) {
    for (; channels - at >= width; at += width) block(at, width);
  }
  if (at < channels) block(channels - kFewestBlockChannels, kFewestBlockChannels);
}
// Calls channel(i, c) for each of a block: it is the i-th there, and `c` counts from its first one.
template <class Channel>
void ForChannelsOfBlock(int64_t width, const Channel& channel) {
  for (int64_t i = 0; i < width; ++i) {
    const int64_t four = i / 4, sixteens = width / 16;
    channel(i, four % sixteens * 16 + four / sixteens * 4 + i % 4);
  }
}
// Returns the channels of all blocks together.
constexpr int64_t BlockChannels(int64_t channels) {
  return (channels + kFewestBlockChannels - 1) / kFewestBlockChannels * kFewestBlockChannels;
}

struct ByteWords {
  int64_t words() const { return (row_taps + 3) / 4; }  // words of one column
  int64_t extent() const { return (column_taps - 1) * dilation + 1; }
  // Bytes of the windows' elements at a time, in blocks of `widest` channels.
  int64_t ScratchBytes(int64_t widest) const { return MostColumns() * words() * 4 * widest; }
  // Columns at a time: for a few windows at least.
  int64_t MostColumns() const {
    constexpr int64_t kColumns = 64, kWindows = 4;
    const int64_t few = (kWindows - 1) * stride + extent();
    return few > kColumns ? few : kColumns;
  }
  // Bytes of weights: [block][column tap][word][4 of its vectors][channel][4 taps].
  int64_t WeightBytes() const { return BlockChannels(channels) * column_taps * words() * 4; }

  int64_t channels = 0;
  int64_t row_taps = 0, column_taps = 0;
  int64_t stride = 1, dilation = 1, pad = 0;  // the steps along columns
  int64_t columns = 0, windows = 0;           // columns of a plane's row, windows of a result's row
  bool x_signed = false;
  const int8_t* weights = nullptr;
  const int32_t* start = nullptr;  // the initial sums, by blocks
  const float* scale = nullptr;    // factors of the sums, by blocks
  const float* bias = nullptr;     // one per channel, by blocks
  const StepBounds* bounds = nullptr;
};

struct ByteWordKernels {
  int64_t widest;  // 0: this tier has none
  // A row of windows. rows: the elements of its taps, [4 * words()] rows of the plane; null:
  // padding, which is `padding`, [channels]. `scratch` is aligned to 64 bytes.
  void (*run)(const ByteWords& conv, const uint8_t* const* rows, const uint8_t* padding,
              uint8_t* scratch, uint8_t* y);
};

// Returns the kernels of the highest tier that is not above `isa`; all tiers give the same bytes.
const ByteWordKernels& ByteWordKernelsFor(Isa isa);

}  // namespace reprise::cpu
