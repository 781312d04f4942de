// Resample: images of another size, as Pillow (up to 12) makes them, bit for bit. Newer ones take
// the columns first where that is less work, which moves a pixel by one here and there.
//
// Weights come from a filter that grows with the reduction (so that pixels left out still
// count), rounded to 22 bits; rows are resampled first, then columns, with 8 bits in between.
#pragma once

#include <cstdint>
#include <vector>

#include "client/images/image.h"

namespace reprise::images {

enum class Filter { kNearest, kBilinear, kBicubic };

// For each position of one dim of the result: which positions of the source count, and how much.
struct Taps {
  int most = 0;                  // weights of a position
  std::vector<int> first;        // the first position that counts
  std::vector<int> count;        // how many do
  std::vector<int32_t> weights;  // [size, most], of 2^22
};

// `from` and `to` are sizes; positions [begin, end) of the result are made. Not for kNearest.
Taps TapsOf(Filter filter, int from, int to, int begin, int end);

// Returns the rectangle `part` of `source` resampled to `width` x `height`.
Image Resample(const ImageView& source, Filter filter, int width, int height, const Rect& part);
inline Image Resample(const ImageView& source, Filter filter, int width, int height) {
  return Resample(source, filter, width, height, {0, 0, width, height});
}

// Resamples one row of pixels: `from` is read, `taps.first.size()` pixels of `to` are written.
void ResampleRow(const uint8_t* from, const Taps& taps, uint8_t* to);
// Resamples the row of pixels whose taps are those at `position`: `rows` begins at row `first`,
// each `bytes` long.
void ResampleColumn(const uint8_t* rows, size_t bytes, const Taps& taps, int position, int first,
                    uint8_t* to);

}  // namespace reprise::images
