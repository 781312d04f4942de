// Rows as bytes, for products with precision int8: a row, or each block of one, has a scale of its
// own, so that no row depends on another.
//
// A whole row becomes numbers from 0 to 255 with a zero point: the row's range and 0 are 255 steps.
// A block of a row becomes numbers from -127 to 127: its largest magnitude is 127 steps. Numbers
// are rounded to the nearest step, halves to even. Where a number is not finite, nothing is: all
// that is made of the row, or of the block, is no number. Ranges below kLeastRange count as 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace reprise::ops {

// The deepest products whose sums stay within 32 bits.
inline constexpr int64_t kDeepestRounded = int64_t{1} << 16;

struct RowScale {
  float scale = 0;    // the size of a step
  float inverse = 0;  // steps of 1
  int32_t zero = 0;   // the number that stands for 0
};

inline constexpr float kLeastRange = 1e-30f;

// Returns the scale of a row within [`low`, `high`], around 0; NaN if any number is not finite.
inline RowScale RowScaleOf(float low, float high) {
  const float range = high - low;
  if (!(range < std::numeric_limits<float>::infinity())) {
    return {.scale = std::numeric_limits<float>::quiet_NaN()};
  }
  if (range < kLeastRange) return {};
  const float inverse = 255 / range;
  return {range / 255, inverse, static_cast<int32_t>(std::nearbyint(-low * inverse))};
}

// Returns the scale of a block by its largest magnitude: NaN or infinite where a number is.
inline RowScale BlockScaleOf(float largest) {
  if (!(largest < std::numeric_limits<float>::infinity())) {
    return {.scale = std::numeric_limits<float>::quiet_NaN()};
  }
  if (largest < kLeastRange) return {};
  return {largest / 127, 127 / largest, 0};
}

// Returns the length of the blocks of a row by which it is rounded for weights in blocks of
// `block`: these, or equal parts of them that are no longer than 128. 0: there is none, as each is
// a multiple of 8.
inline int64_t RoundedBlockOf(int64_t block) {
  constexpr int64_t kMost = 128, kStep = 8;
  for (int64_t parts = 1; block / parts >= kStep; ++parts) {
    const int64_t length = block / parts;
    if (block % parts == 0 && length % kStep == 0 && length <= kMost) return length;
  }
  return 0;
}

// Rounds `count` rows of `k` numbers, by `block` (0: whole rows), to the floats that their bytes
// stand for.
void RoundRows(const float* rows, int64_t count, int64_t k, int64_t block, float* rounded);

}  // namespace reprise::ops
