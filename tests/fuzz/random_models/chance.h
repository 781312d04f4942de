// Chance: every random decision of one model or its requests, from one seed, or from bytes that a
// fuzzer chose.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/graph/tensor.h"

namespace reprise::fuzz {

class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15u + 1) {}
  // Each decision takes as many of `bytes` as it needs, so that a change of one byte changes one
  // decision; after their end decisions come from a seed. The bytes outlive it.
  static Chance FromBytes(absl::string_view bytes) {
    Chance chance(bytes.size());
    chance.bytes_ = bytes;
    return chance;
  }

  int64_t Below(int64_t n) {
    const auto choices = static_cast<uint64_t>(n);
    return static_cast<int64_t>(Next(choices) % choices);
  }
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
  uint64_t Seed() { return Next(UINT64_MAX); }

  // Around 0, mostly within [-size, size]; `round`: a multiple of 1/8, whose sums and products of
  // few factors are exact.
  double Number(double size, bool round) {
    const double value = (static_cast<double>(Below(4001)) / 1000 - 2) * size;
    return round ? static_cast<double>(static_cast<int64_t>(value * 8)) / 8 : value;
  }

 private:
  uint64_t Next(uint64_t choices) {
    if (bytes_.empty()) return engine_();
    uint64_t number = 0;
    for (uint64_t left = choices - 1;; left >>= 8) {
      number = number << 8 | static_cast<unsigned char>(bytes_[0]);
      bytes_.remove_prefix(1);
      if (left < 256 || bytes_.empty()) return number;
    }
  }

  std::mt19937_64 engine_;
  absl::string_view bytes_;  // that decide the next numbers
};

}  // namespace reprise::fuzz
