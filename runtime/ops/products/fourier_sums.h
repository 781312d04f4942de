// FourierSums: the sums of products with waves of all frequencies, as in Fourier transforms.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace reprise::ops {

// x becomes X with X[k] = the sum of x[n] e^(-2 pi i k n / size). A size that is no power of two is
// a convolution with a chirp (Bluestein 1970): k n is (k^2 + n^2 - (k - n)^2) / 2.
//
// Threads: one caller. Memory: made for one size, and holds its waves.
class FourierSums {
 public:
  using Complex = std::complex<double>;
  // `size` is at least 1.
  explicit FourierSums(int64_t size);
  // `x` has `size` elements.
  void Run(std::vector<Complex>& x);

 private:
  // The same sums of a power of two.
  class PowerOfTwo {
   public:
    explicit PowerOfTwo(int64_t size);
    void Run(std::vector<Complex>& x) const;

   private:
    int64_t size_;
    std::vector<Complex> waves_;
  };

  int64_t size_, wide_;
  PowerOfTwo power_;
  std::vector<Complex> chirp_, kernel_, work_;
};

}  // namespace reprise::ops
