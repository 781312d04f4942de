// The products of gemm_blocks.h on CPUs whose vectors multiply bytes (AVX512_VNNI, AVX-VNNI), exact
// to float32: weights of a few bits stay integers, and rows of A become integers of 24 bits, block
// by block (see block_digits-inl.h). Sums within a block are integers and exact; each is multiplied
// by the power of two of its row's block and the factor of its column, and added in the order of k.
// So a row's results have the same bits whatever the number of rows and however work is divided.
//
// The same kernels round rows to bytes, block by block (ops/products/round_rows.h), where a product
// asks for that: then rows have one digit, and weights are packed alike.
//
// Threads: all functions are pure; calls on disjoint parts of one C with scratch of their own may
// run at the same time.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/ops/products/round_rows.h"

namespace reprise::cpu {

// How these kernels divide k: blocks of weights, cut into equal ones where they are long.
struct DigitBlocks {
  static constexpr int64_t kStep = 8;

  // Returns the length of blocks for weights in this form, or 0 where these kernels do not take it.
  // Sums of a block stay within 32 bits, of digits 16.
  static int64_t LengthFor(const BlockForm& form) { return ops::RoundedBlockOf(form.block); }

  DigitBlocks(const BlockForm& form, int64_t k)
      : bits(form.bits),
        length(LengthFor(form)),
        of_form(form.block / length),
        k(k),
        count((k + length - 1) / length),
        factor_rows(form.offsets ? 2 : 1),
        words(length / form.PerWord()),
        last_words((k - (count - 1) * length + form.PerWord() - 1) / form.PerWord()) {}

  // 32-bit words of a column's numbers: in all blocks before `block`, and in one.
  int64_t WordsBefore(int64_t block) const { return block * words; }
  int64_t WordsOf(int64_t block) const { return block + 1 < count ? words : last_words; }

  int bits;
  int64_t length;
  int64_t of_form;  // blocks that share a factor
  int64_t k;
  int64_t count;
  int64_t factor_rows;  // 2: a factor is followed by an offset
  int64_t words, last_words;
};

struct BlockDigitKernels {
  // Divides the work: panel_columns, tile_rows and costs alone.
  GemmKernels division;
  int64_t (*packed_bytes)(int64_t k, int64_t n, const BlockForm& form);
  // Zero points are whole numbers that the stored ones may be, and in panels of their own; offsets
  // follow factors. Null for the tile unit: it reads the panels of BlockDigitKernelsFor.
  void (*pack)(const BlockSource& b, const BlockForm& form, int64_t k, int64_t n, void* packed);
  // Bytes of GemmArgs::scratch for a part of up to `m` rows.
  int64_t (*scratch_bytes)(int64_t m, int64_t k, const BlockForm& form);
  // `args.packed_b` and `args.scratch` are aligned to 64 bytes; args.blocking is not used.
  void (*part)(const GemmArgs& args, const BlockForm& form, const GemmPart& part);
};

// Returns nullptr where `isa` has no instruction for that. `rounded`: rows are rounded to bytes.
const BlockDigitKernels* BlockDigitKernelsFor(Isa isa, bool rounded = false);
// Returns the same by the tile unit (AMX), with the same bits; null where `isa` has none. Pays from
// a few rows on. Its speed has not been measured.
const BlockDigitKernels* TileBlockDigitKernelsFor(Isa isa, bool rounded = false);

}  // namespace reprise::cpu
