// Weights of a few bits in blocks, at random, and the floats that they stand for.
#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {

// How weights of a few bits are stored and kept.
struct Stored {
  int bits;    // as the model has them
  int kept;    // bits in packed words
  int offset;  // 8 or 128: they are signed there
  int64_t block;
  bool points;
};

inline void PrintTo(const Stored& s, std::ostream* out) {
  *out << s.bits << " bits kept as " << s.kept << ", offset " << s.offset << ", blocks of "
       << s.block << (s.points ? " with points" : "");
}

// Weights [n, k] in blocks along k, and `product`'s B as the floats that they stand for.
struct Blocks {
  Blocks(const Stored& s, uint32_t seed, GuardedProduct& product)
      : form{.bits = s.kept, .block = s.block, .points = s.points} {
    std::mt19937 random(seed);
    const int64_t n = product.n, k = product.k, blocks = form.Blocks(k);
    row_bytes = (blocks * s.block * s.bits + 7) / 8;
    numbers.assign(static_cast<size_t>(n * row_bytes), 0);
    for (uint8_t& byte : numbers) byte = static_cast<uint8_t>(random());
    if (s.offset == 8) {  // numbers of four bits, a byte each
      for (uint8_t& byte : numbers) byte = static_cast<uint8_t>(static_cast<int>(byte % 16) - 8);
    }
    for (int64_t i = 0; i < n * blocks; ++i) {
      scales.push_back(0.001f * static_cast<float>(1 + random() % 90));
      points.push_back(static_cast<float>(random() % (1 << s.bits)));
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) {
        const int64_t bit = i * s.bits, block = j * blocks + i / s.block;
        const uint8_t byte = numbers[j * row_bytes + bit / 8];
        const int stored = s.offset == 0 ? byte >> bit % 8 & ((1 << s.bits) - 1)
                                         : static_cast<uint8_t>(byte + s.offset);
        const float point = s.points ? points[block] : static_cast<float>(1 << (s.kept - 1));
        product.b[j * product.ldb + i] = (static_cast<float>(stored) - point) * scales[block];
      }
    }
    source = {.numbers = numbers.data(),
              .row_bytes = row_bytes,
              .bits = s.bits,
              .offset = s.offset,
              .scales = scales.data(),
              .points = s.points ? points.data() : nullptr};
  }

  BlockForm form;
  int64_t row_bytes;
  std::vector<uint8_t> numbers;
  std::vector<float> scales, points;
  BlockSource source;
};

}  // namespace reprise::cpu
