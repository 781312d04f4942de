// Chance: every random decision of one model or its requests, from one seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "runtime/graph/tensor.h"

namespace reprise::fuzz {

class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15u + 1) {}

  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename T>
  T Of(std::initializer_list<T> items) {
    return items.begin()[Below(static_cast<int64_t>(items.size()))];
  }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(static_cast<int64_t>(items.size()))];
  }
  uint64_t Seed() { return engine_(); }

  // Around 0, mostly within [-size, size]; `round`: a multiple of 1/8, whose sums and products of
  // few factors are exact.
  double Number(double size, bool round) {
    const double value = (static_cast<double>(Below(4001)) / 1000 - 2) * size;
    return round ? static_cast<double>(static_cast<int64_t>(value * 8)) / 8 : value;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace reprise::fuzz
