#include "runtime/ops/weights/block_formats.h"

#include <algorithm>
#include <cstring>

#include "runtime/graph/tensor.h"

namespace reprise::ops {
namespace {

constexpr int kSmall = 32;   // numbers of a block of the older formats
constexpr int kLarge = 256;  // the same where scales have scales

float HalfAt(const uint8_t* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return HalfToFloat(half);
}

// Reads bytes that hold number i in their low and number i + 16 in their high bits.
void TakeNibbles(const uint8_t* bytes, int less, int8_t* numbers) {
  for (int i = 0; i < kSmall / 2; ++i) {
    numbers[i] = static_cast<int8_t>((bytes[i] & 15) - less);
    numbers[i + kSmall / 2] = static_cast<int8_t>((bytes[i] >> 4) - less);
  }
}

// Reads the same with a fifth bit for each, in order, in the four bytes `high`.
void TakeFiveBits(const uint8_t* high, const uint8_t* bytes, int less, int8_t* numbers) {
  uint32_t fifth;
  std::memcpy(&fifth, high, sizeof(fifth));
  for (int i = 0; i < kSmall / 2; ++i) {
    const int low_bit = static_cast<int>(fifth >> i & 1);
    const int high_bit = static_cast<int>(fifth >> (i + 16) & 1);
    numbers[i] = static_cast<int8_t>(((bytes[i] & 15) | low_bit << 4) - less);
    numbers[i + kSmall / 2] = static_cast<int8_t>(((bytes[i] >> 4) | high_bit << 4) - less);
  }
}

// scale f16, 16 bytes
void TakeQ4_0(const uint8_t* block, BlockParts& parts) {
  parts.scales[0] = HalfAt(block);
  TakeNibbles(block + 2, 8, parts.numbers);
}

// scale f16, offset f16, 16 bytes
void TakeQ4_1(const uint8_t* block, BlockParts& parts) {
  parts.scales[0] = HalfAt(block);
  parts.offsets[0] = HalfAt(block + 2);
  TakeNibbles(block + 4, 0, parts.numbers);
}

// scale f16, 4 bytes of fifth bits, 16 bytes
void TakeQ5_0(const uint8_t* block, BlockParts& parts) {
  parts.scales[0] = HalfAt(block);
  TakeFiveBits(block + 2, block + 6, 16, parts.numbers);
}

// scale f16, offset f16, 4 bytes of fifth bits, 16 bytes
void TakeQ5_1(const uint8_t* block, BlockParts& parts) {
  parts.scales[0] = HalfAt(block);
  parts.offsets[0] = HalfAt(block + 2);
  TakeFiveBits(block + 4, block + 8, 0, parts.numbers);
}

// scale f16, 32 signed bytes
void TakeQ8_0(const uint8_t* block, BlockParts& parts) {
  parts.scales[0] = HalfAt(block);
  std::memcpy(parts.numbers, block + 2, kSmall);
}

// scale f16, 16 bytes of places in a table
void TakeIq4Nl(const uint8_t* block, BlockParts& parts) {
  static constexpr int8_t kTable[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
  parts.scales[0] = HalfAt(block);
  for (int i = 0; i < kSmall / 2; ++i) {
    parts.numbers[i] = kTable[block[2 + i] & 15];
    parts.numbers[i + kSmall / 2] = kTable[block[2 + i] >> 4];
  }
}

// Takes the factors of Q4_K and Q5_K: scale f16, scale of offsets f16, then 12 bytes with eight
// times six bits for both.
void TakeGroupFactors(const uint8_t* block, BlockParts& parts) {
  const float scale = HalfAt(block), least = HalfAt(block + 2);
  const uint8_t* const bits = block + 4;
  for (int i = 0; i < 4; ++i) {
    parts.scales[i] = scale * static_cast<float>(bits[i] & 63);
    parts.offsets[i] = -(least * static_cast<float>(bits[4 + i] & 63));
    const int of_scale = (bits[8 + i] & 15) | (bits[i] >> 6) << 4;
    const int of_least = (bits[8 + i] >> 4) | (bits[4 + i] >> 6) << 4;
    parts.scales[4 + i] = scale * static_cast<float>(of_scale);
    parts.offsets[4 + i] = -(least * static_cast<float>(of_least));
  }
}

// Takes the factors, then 128 bytes: each 32 of them hold two groups, the first in their low bits.
void TakeQ4K(const uint8_t* block, BlockParts& parts) {
  TakeGroupFactors(block, parts);
  const uint8_t* bytes = block + 16;
  for (int i = 0; i < kLarge; i += 2 * kSmall, bytes += kSmall) {
    for (int j = 0; j < kSmall; ++j) {
      parts.numbers[i + j] = static_cast<int8_t>(bytes[j] & 15);
      parts.numbers[i + kSmall + j] = static_cast<int8_t>(bytes[j] >> 4);
    }
  }
}

// Takes the same with 32 bytes of fifth bits before the numbers: bit g of byte j is number j's of
// group g.
void TakeQ5K(const uint8_t* block, BlockParts& parts) {
  TakeGroupFactors(block, parts);
  const uint8_t* const high = block + 16;
  const uint8_t* bytes = block + 48;
  for (int group = 0; group < kLarge / kSmall; group += 2, bytes += kSmall) {
    int8_t* const numbers = parts.numbers + int64_t{group} * kSmall;
    for (int j = 0; j < kSmall; ++j) {
      numbers[j] = static_cast<int8_t>((bytes[j] & 15) | (high[j] >> group & 1) << 4);
      numbers[kSmall + j] =
          static_cast<int8_t>((bytes[j] >> 4) | (high[j] >> (group + 1) & 1) << 4);
    }
  }
}

// 128 bytes of low bits, 64 of the two high ones, 16 signed bytes of scales, scale f16: halves of
// 128 numbers, whose quarters share the bytes.
void TakeQ6K(const uint8_t* block, BlockParts& parts) {
  constexpr int kHalf = kLarge / 2;
  const float scale = HalfAt(block + 208);
  for (int i = 0; i < BlockParts::kMostGroups; ++i) {
    parts.scales[i] = scale * static_cast<float>(static_cast<int8_t>(block[192 + i]));
  }
  for (int half = 0; half < 2; ++half) {
    const uint8_t* const low = block + int64_t{half} * 64;
    const uint8_t* const high = block + 128 + int64_t{half} * kSmall;
    int8_t* const numbers = parts.numbers + int64_t{half} * kHalf;
    for (int j = 0; j < kSmall; ++j) {
      const int bits = high[j];
      numbers[j] = static_cast<int8_t>(((low[j] & 15) | (bits & 3) << 4) - 32);
      numbers[j + 32] = static_cast<int8_t>(((low[j + 32] & 15) | (bits >> 2 & 3) << 4) - 32);
      numbers[j + 64] = static_cast<int8_t>(((low[j] >> 4) | (bits >> 4 & 3) << 4) - 32);
      numbers[j + 96] = static_cast<int8_t>(((low[j + 32] >> 4) | (bits >> 6 & 3) << 4) - 32);
    }
  }
}

constexpr BlockFormat kFormats[] = {
    {"Q4_0", 2, kSmall, 18, kSmall, 4, 8, false, TakeQ4_0},
    {"Q4_1", 3, kSmall, 20, kSmall, 4, 0, true, TakeQ4_1},
    {"Q5_0", 6, kSmall, 22, kSmall, 8, 128, false, TakeQ5_0},
    {"Q5_1", 7, kSmall, 24, kSmall, 8, 128, true, TakeQ5_1},
    {"Q8_0", 8, kSmall, 34, kSmall, 8, 128, false, TakeQ8_0},
    {"Q4_K", 12, kLarge, 144, kSmall, 4, 0, true, TakeQ4K},
    {"Q5_K", 13, kLarge, 176, kSmall, 8, 128, true, TakeQ5K},
    {"Q6_K", 14, kLarge, 210, kLarge / BlockParts::kMostGroups, 8, 128, false, TakeQ6K},
    {"IQ4_NL", 20, kSmall, 18, kSmall, 8, 128, false, TakeIq4Nl},
};

template <typename Holds>
const BlockFormat* Find(Holds holds) {
  const auto* const found = std::find_if(std::begin(kFormats), std::end(kFormats), holds);
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace

absl::Span<const BlockFormat> BlockFormats() { return kFormats; }

const BlockFormat* FindBlockFormat(absl::string_view name) {
  return Find([&](const BlockFormat& format) { return format.name == name; });
}

const BlockFormat* FindBlockFormat(int64_t type) {
  return Find([&](const BlockFormat& format) { return format.type == type; });
}

}  // namespace reprise::ops
