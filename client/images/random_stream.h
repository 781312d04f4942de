// RandomStream: the random numbers of one sample, the same on every machine and for any number of
// threads: they depend on the loader's seed, the epoch and the sample's position alone.
#pragma once

#include <cstdint>

namespace reprise::images {

class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t epoch, uint64_t index)
      : state_(Mix(Mix(Mix(seed) ^ epoch) ^ index)) {}

  uint64_t Next() { return Mix(state_ += 0x9E3779B97F4A7C15u); }
  // In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  double Between(double least, double most) { return least + (most - least) * Unit(); }
  // In [0, count); `count` is positive.
  int64_t Below(int64_t count) { return static_cast<int64_t>(Unit() * static_cast<double>(count)); }

 private:
  // SplitMix64 (Steele, Lea, Flood 2014).
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace reprise::images
