#include "client/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// The loops are vectors of the compiler; which instructions they become is chosen as the program
// starts. Other architectures have one form.
#if defined(__x86_64__)
#define REPRISE_FOR_EACH_CPU __attribute__((target_clones("avx2", "sse4.1", "default")))
#else
#define REPRISE_FOR_EACH_CPU
#endif

namespace reprise::images {
namespace {

constexpr int kPrecision = 32 - 8 - 2;
constexpr int32_t kHalf = int32_t{1} << (kPrecision - 1);

typedef uint8_t Bytes4 __attribute__((vector_size(4)));
typedef int32_t Ints4 __attribute__((vector_size(16)));
typedef uint8_t Bytes8 __attribute__((vector_size(8)));
typedef int32_t Ints8 __attribute__((vector_size(32)));

double Weight(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::kBilinear) return x < 1.0 ? 1.0 - x : 0.0;
  constexpr double kA = -0.5;
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double SupportOf(Filter filter) { return filter == Filter::kBilinear ? 1.0 : 2.0; }

uint8_t ClipSum(int32_t sum) {
  const int32_t value = sum >> kPrecision;
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// For each position of the result the nearest one of the source, summed up as Pillow does it: a
// product would fall to the other side here and there.
std::vector<int> NearestOf(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  std::vector<int> nearest;
  double at = scale * 0.5;
  for (int i = 0; i < to; ++i, at += scale) {
    nearest.push_back(std::min(static_cast<int>(at), from - 1));
  }
  return nearest;
}

Image Nearest(const ImageView& source, int width, int height, const Rect& part) {
  const std::vector<int> across = NearestOf(source.width, width);
  const std::vector<int> down = NearestOf(source.height, height);
  Image image(part.width, part.height);
  for (int y = 0; y < part.height; ++y) {
    const uint8_t* const from = source.row(down[static_cast<size_t>(part.y + y)]);
    for (int x = 0; x < part.width; ++x) {
      const auto at = static_cast<size_t>(across[static_cast<size_t>(part.x + x)]);
      std::memcpy(image.row(y) + static_cast<size_t>(x) * kPixelBytes, from + at * kPixelBytes,
                  kPixelBytes);
    }
  }
  return image;
}

}  // namespace

Taps TapsOf(Filter filter, int from, int to, int begin, int end) {
  const double scale = static_cast<double>(from) / to;
  const double filter_scale = std::max(scale, 1.0);
  const double support = SupportOf(filter) * filter_scale;
  Taps taps;
  taps.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<size_t>(end - begin) * static_cast<size_t>(taps.most));
  std::vector<double> weights(static_cast<size_t>(taps.most));
  for (int position = begin; position < end; ++position) {
    const double center = (position + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int count = std::min(static_cast<int>(center + support + 0.5), from) - first;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      weights[static_cast<size_t>(i)] = Weight(filter, (i + first - center + 0.5) / filter_scale);
      sum += weights[static_cast<size_t>(i)];
    }
    int32_t* const to_weights = taps.weights.data() + static_cast<size_t>(position - begin) *
                                                          static_cast<size_t>(taps.most);
    for (int i = 0; i < count; ++i) {
      const double weight = weights[static_cast<size_t>(i)] / (sum != 0 ? sum : 1.0);
      to_weights[i] = static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kPrecision));
    }
    taps.first.push_back(first);
    taps.count.push_back(count);
  }
  return taps;
}

REPRISE_FOR_EACH_CPU
void ResampleRow(const uint8_t* from, const Taps& taps, uint8_t* to) {
  const int size = static_cast<int>(taps.first.size());
  const int32_t* weights = taps.weights.data();
  for (int x = 0; x < size; ++x, weights += taps.most) {
    const uint8_t* pixel = from + static_cast<size_t>(taps.first[x]) * kPixelBytes;
    Ints4 sum = {kHalf, kHalf, kHalf, kHalf};
    for (int i = 0; i < taps.count[x]; ++i, pixel += kPixelBytes) {
      Bytes4 bytes;
      std::memcpy(&bytes, pixel, sizeof(bytes));
      sum += __builtin_convertvector(bytes, Ints4) * weights[i];
    }
    sum >>= kPrecision;
    sum = sum < 0 ? Ints4{0, 0, 0, 0} : sum;
    sum = sum > 255 ? Ints4{255, 255, 255, 255} : sum;
    const Bytes4 bytes = __builtin_convertvector(sum, Bytes4);
    std::memcpy(to + static_cast<size_t>(x) * kPixelBytes, &bytes, sizeof(bytes));
  }
}

REPRISE_FOR_EACH_CPU
void ResampleColumn(const uint8_t* rows, size_t bytes, const Taps& taps, int position, int first,
                    uint8_t* to) {
  const int32_t* const weights =
      taps.weights.data() + static_cast<size_t>(position) * static_cast<size_t>(taps.most);
  const int count = taps.count[static_cast<size_t>(position)];
  const uint8_t* const start =
      rows + static_cast<size_t>(taps.first[static_cast<size_t>(position)] - first) * bytes;
  size_t at = 0;
  for (; at + sizeof(Bytes8) <= bytes; at += sizeof(Bytes8)) {
    Ints8 sum = {kHalf, kHalf, kHalf, kHalf, kHalf, kHalf, kHalf, kHalf};
    const uint8_t* from = start + at;
    for (int i = 0; i < count; ++i, from += bytes) {
      Bytes8 part;
      std::memcpy(&part, from, sizeof(part));
      sum += __builtin_convertvector(part, Ints8) * weights[i];
    }
    sum >>= kPrecision;
    sum = sum < 0 ? Ints8{} : sum;
    sum = sum > 255 ? Ints8{} + 255 : sum;
    const Bytes8 made = __builtin_convertvector(sum, Bytes8);
    std::memcpy(to + at, &made, sizeof(made));
  }
  for (; at < bytes; ++at) {
    int32_t sum = kHalf;
    for (int i = 0; i < count; ++i) {
      sum += start[at + static_cast<size_t>(i) * bytes] * weights[i];
    }
    to[at] = ClipSum(sum);
  }
}

Image Resample(const ImageView& source, Filter filter, int width, int height, const Rect& part) {
  if (filter == Filter::kNearest) return Nearest(source, width, height, part);
  const Taps across = TapsOf(filter, source.width, width, part.x, part.x + part.width);
  const Taps down = TapsOf(filter, source.height, height, part.y, part.y + part.height);
  const int first = down.first.front();
  const int last = down.first.back() + down.count.back();
  // A dim that keeps its size keeps its bytes.
  Image rows(part.width, last - first);
  for (int y = 0; y < rows.height; ++y) {
    const uint8_t* const from = source.row(first + y);
    if (width == source.width) {
      std::memcpy(rows.row(y), from + static_cast<size_t>(part.x) * kPixelBytes, rows.stride());
    } else {
      ResampleRow(from, across, rows.row(y));
    }
  }
  Image image(part.width, part.height);
  for (int y = 0; y < part.height; ++y) {
    if (height == source.height) {
      std::memcpy(image.row(y), rows.row(part.y + y - first), image.stride());
    } else {
      ResampleColumn(rows.pixels.data(), rows.stride(), down, y, first, image.row(y));
    }
  }
  return image;
}

}  // namespace reprise::images
