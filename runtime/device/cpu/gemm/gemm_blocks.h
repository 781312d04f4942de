// C[m,n] = activation(A[m,k] * B[k,n] + bias[n]) + residual[m,n], float32, for weights stored in a
// few bits each, with a factor and perhaps a zero point for each block of them along k: each is
// w = (number - point) * scale, rounded to float32 once, as the float weights would be. Or an
// offset takes the place of the zero point: w = number * scale + offset, where the product is
// exact.
//
// Packed weights are the panels, one after another, of `panel_columns` columns each: block by block
// of k the factors of the columns, their zero points or offsets where the form has them, floats,
// then words of 32 bits. A word holds 32 / bits neighbours of a column, the first in its lowest
// bits; the last one of a column is filled up. Behind the last column everything is 0.
//
// Every element is summed in the order of k, as in gemm.h: the result has the same bits as with
// these weights stored as floats.
//
// Threads: all functions are pure; calls on disjoint parts of one C may run at the same time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/gemm/gemm.h"

namespace reprise::cpu {

// How weights are stored.
struct BlockForm {
  int bits = 4;         // 4 or 8
  int64_t block = 32;   // numbers along k; a multiple of the numbers in a word
  bool points = false;  // false: 2^(bits - 1) is the zero point of all numbers
  // Instead of points: each number, less 128 where it has 8 bits, times its scale plus this.
  bool offsets = false;

  int64_t PerWord() const { return 32 / bits; }
  int64_t Blocks(int64_t k) const { return (k + block - 1) / block; }
  // Floats of a column for each block.
  int64_t FactorRows() const { return points || offsets ? 2 : 1; }
  // 32-bit words of a column: numbers, factors and points or offsets.
  int64_t ColumnWords(int64_t k) const {
    const int64_t last = k - (Blocks(k) - 1) * block;
    const int64_t words = (Blocks(k) - 1) * (block / PerWord());
    return Blocks(k) * FactorRows() + words + (last + PerWord() - 1) / PerWord();
  }
};

// B as a model has it, column by column.
struct BlockSource {
  // [n] rows of `row_bytes`: numbers of `bits` bits, low bits first; of 8, less `offset` (128 where
  // they are signed, 8 where they are signed numbers of four bits).
  const uint8_t* numbers = nullptr;
  int64_t row_bytes = 0;
  int bits = 4;  // 2, 4 or 8
  int offset = 0;
  const float* scales = nullptr;  // [n, blocks]
  // [n, blocks]: points, in which `offset` is already, or offsets; or null
  const float* points = nullptr;
};

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

struct BlockGemmKernels {
  int64_t panel_columns;
  // Writes PackedBytes(k, n, form) bytes.
  void (*pack)(const BlockSource& b, const BlockForm& form, int64_t k, int64_t n, void* packed);
  // `args.packed_b` is the output of `pack`, aligned to 64 bytes; args.blocking is not used.
  void (*part)(const GemmArgs& args, const BlockForm& form, const GemmPart& part);
  // Widens panel `panel` to the floats that GemmKernels::pack would write.
  void (*widen)(const void* packed, const BlockForm& form, int64_t k, int64_t panel, float* floats);

  int64_t Panels(int64_t n) const { return (n + panel_columns - 1) / panel_columns; }
  int64_t PackedBytes(int64_t k, int64_t n, const BlockForm& form) const {
    return Panels(n) * panel_columns * form.ColumnWords(k) * int64_t{sizeof(uint32_t)};
  }
};

// Returns the kernels of the highest tier up to `isa`. Work is divided as GemmKernelsFor(isa)
// divides it.
const BlockGemmKernels& BlockGemmKernelsFor(Isa isa);

// The same products with precision `bf16`, on CPUs whose vectors multiply bfloat16
// (AVX512_BF16). Numbers of 4 and 8 bits, less the middle of their range, are numbers of bfloat16:
// a panel's become those on the way, in registers or in the cache, and are never kept. Rows of A
// are rounded to bfloat16.
//
// Within a block products are summed in float32 in the order of k's pairs; each sum is multiplied
// by the factor of its column and added in the order of k. Where columns have zero points or
// offsets, each block adds one product more: by the sum of the block of the row. So weights are not
// rounded, and a row's results have the same bits whatever the number of rows and however work is
// divided.
//
// Packed weights are the panels, one after another: block by block of k the factors of the columns,
// their offsets where the form has points or offsets, and words as above.
struct Bf16BlockKernels {
  // Divides the work: panel_columns, tile_rows and costs alone.
  GemmKernels division;
  int64_t (*packed_bytes)(int64_t k, int64_t n, const BlockForm& form);
  void (*pack)(const BlockSource& b, const BlockForm& form, int64_t k, int64_t n, void* packed);
  // Bytes of GemmArgs::scratch for a part of up to `m` rows.
  int64_t (*scratch_bytes)(int64_t m, int64_t k, const BlockForm& form);
  // `args.packed_b` and `args.scratch` are aligned to 64 bytes; args.blocking is not used.
  void (*part)(const GemmArgs& args, const BlockForm& form, const GemmPart& part);
  // Rounds the weights of panel `panel` to the words of a panel of gemm_bf16.h, for kernels that
  // know nothing else (the tile unit).
  void (*widen)(const void* packed, const BlockForm& form, int64_t k, int64_t panel, void* words);
};

// Returns nullptr where `isa` has no instruction for that.
const Bf16BlockKernels* Bf16BlockKernelsFor(Isa isa);

}  // namespace reprise::cpu
