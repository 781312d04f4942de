// The weights of depthwise convolutions of bytes as their kernels read them: tap by tap, and as
// words of four taps of a column with their sums.
#pragma once

#include <cstdint>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/int8/byte_words.h"

namespace reprise::cpu {

inline int64_t AlignedBytes(int64_t bytes) {
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes)));
}

// The pieces, one after the other, each aligned to 64 bytes: bytes [taps, channels]; where the
// tier has words of taps, these by blocks of channels; the sums of each channel's taps in that
// order.
struct PackedTaps {
  int64_t RawBytes() const {
    return AlignedBytes(words.row_taps * words.column_taps * words.channels);
  }
  int64_t WordBytes() const { return widest == 0 ? 0 : AlignedBytes(words.WeightBytes()); }
  int64_t SumBytes() const {
    return widest == 0 ? 0 : AlignedBytes(BlockChannels(words.channels) * 4);
  }
  int64_t Bytes() const { return RawBytes() + WordBytes() + SumBytes(); }

  ByteWords words;
  int64_t widest = 0;
};

}  // namespace reprise::cpu
