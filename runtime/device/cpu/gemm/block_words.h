// How numbers of a few bits are put into the 32-bit words that kernels read.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/device/cpu/gemm/gemm_blocks.h"

namespace reprise::cpu {

// The highest bit of each byte of a word: numbers of eight bits below zero become those from 128
// on.
inline constexpr uint32_t kSignBits = 0x80808080u;

// Number `i` of a column.
inline uint32_t NumberAt(const BlockSource& b, const uint8_t* column, int64_t i) {
  const int64_t bit = i * b.bits;
  const int number = column[bit / 8] >> (bit % 8) & ((1 << b.bits) - 1);
  return static_cast<uint8_t>(number + b.offset);
}

// Numbers [i, end) of a column as a word.
inline uint32_t WordAt(const BlockSource& b, const BlockForm& form, const uint8_t* column,
                       int64_t i, int64_t end) {
  if (b.bits == form.bits && end - i == form.PerWord()) {
    uint32_t word;
    std::memcpy(&word, column + i * b.bits / 8, sizeof(word));
    return b.offset == 0 ? word : word ^ kSignBits;
  }
  uint32_t word = 0;
  for (int64_t at = i; at < end; ++at) word |= NumberAt(b, column, at) << ((at - i) * form.bits);
  return word;
}

}  // namespace reprise::cpu
