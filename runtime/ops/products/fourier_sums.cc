#include "runtime/ops/products/fourier_sums.h"

#include <bit>
#include <numbers>
#include <utility>

#include "runtime/base/work_watch.h"

namespace reprise::ops {
namespace {

using Complex = FourierSums::Complex;

// A sine and a cosine cost as much as this many steps of a plain loop.
constexpr int64_t kStepsOfWave = 32;

// Returns e^(-2 pi i turns / of).
Complex Wave(int64_t turns, int64_t of) {
  return std::polar(1.0,
                    -2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(of));
}

}  // namespace

FourierSums::PowerOfTwo::PowerOfTwo(int64_t size) : size_(size) {
  waves_.reserve(size / 2);
  for (int64_t i = 0; i < size / 2; ++i) {
    WatchWork(kStepsOfWave);
    waves_.push_back(Wave(i, size));
  }
}

void FourierSums::PowerOfTwo::Run(std::vector<Complex>& x) const {
  for (int64_t i = 0, mirrored = 0; i < size_; ++i) {
    if (i < mirrored) std::swap(x[i], x[mirrored]);
    int64_t bit = size_ / 2;
    for (; bit > 0 && (mirrored & bit) != 0; bit /= 2) mirrored ^= bit;
    mirrored |= bit;
  }
  for (int64_t half = 1; half < size_; half *= 2) {
    const int64_t stride = size_ / (2 * half);
    for (int64_t start = 0; start < size_; start += 2 * half) {
      WatchWork(8 * half);
      for (int64_t i = 0; i < half; ++i) {
        const Complex odd = waves_[i * stride] * x[start + half + i];
        x[start + half + i] = x[start + i] - odd;
        x[start + i] += odd;
      }
    }
  }
}

FourierSums::FourierSums(int64_t size)
    : size_(size),
      wide_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * size - 1)))),
      power_(std::has_single_bit(static_cast<uint64_t>(size)) ? size : wide_) {
  if (std::has_single_bit(static_cast<uint64_t>(size))) return;
  kernel_.resize(wide_);
  chirp_.reserve(size);
  int64_t square = 0;  // i * i, less whole turns of 2 * size
  for (int64_t i = 0; i < size; ++i) {
    WatchWork(kStepsOfWave);
    chirp_.push_back(Wave(square, 2 * size));
    kernel_[i] = kernel_[(wide_ - i) % wide_] = std::conj(chirp_[i]);
    square = (square + 2 * i + 1) % (2 * size);
  }
  power_.Run(kernel_);
}

void FourierSums::Run(std::vector<Complex>& x) {
  if (chirp_.empty()) return power_.Run(x);
  work_.assign(wide_, 0);
  for (int64_t i = 0; i < size_; ++i) work_[i] = x[i] * chirp_[i];
  power_.Run(work_);
  // The inverse is a forward transform of the conjugate.
  for (int64_t i = 0; i < wide_; ++i) work_[i] = std::conj(work_[i] * kernel_[i]);
  power_.Run(work_);
  for (int64_t i = 0; i < size_; ++i) {
    x[i] = std::conj(work_[i]) / static_cast<double>(wide_) * chirp_[i];
  }
}

}  // namespace reprise::ops
