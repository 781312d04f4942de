// C[m,n] = activation(A[m,k] * B[k,n] * scale[n] + bias[n]) + residual[m,n] with both sides rounded
// to bfloat16: precision `bf16`.
//
// A number is rounded to the nearest bfloat16, to even in a tie; numbers beyond the largest
// become infinite, and NaN stays NaN. A product of two is exact in float32, and products are
// summed in float32. Sums and numbers below 2^-126 may be taken for 0, as the units for bfloat16
// do.
//
// B is packed once: panel p holds the columns [p * panel_columns, (p + 1) * panel_columns), in rows
// of pairs: two neighbours of a column lie in one word of 32 bits, the one of the lower row in its
// lower half. After the last row and column are zeros; rows go up to a multiple of 32. The form is
// the same for all kernels of a tier, so that timing may choose between them.
//
// Each kernel sums each element in one order, whatever the number of rows and however the work is
// divided, and Bf16KernelsFor and Bf16DotKernelsFor do so in the same order: which of these runs
// changes no bit. A device with a tile unit uses TileBf16KernelsFor for any number of rows.
//
// Threads: all functions are pure; calls on disjoint parts of one C may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/gemm/gemm.h"

namespace reprise::cpu {

// Rows of a packed panel come in multiples of this.
inline constexpr int64_t kBf16Depth = 32;

struct Bf16Kernels {
  int64_t panel_columns;
  int64_t tile_rows;
  // These write PackedBytes(k, n) bytes. The factors of int8 (which bfloat16 holds exactly) are not
  // read: `part` gets them.
  void (*pack)(const GemmSource& b, int64_t k, int64_t n, void* packed);
  void (*pack_int8)(const Int8Source& b, int64_t k, int64_t n, void* packed);
  // `args.packed_b` is the output of these, aligned to 64 bytes; args.blocking is not used.
  // `scales` has a factor for each column of all panels, or is null.
  void (*part)(const GemmArgs& args, const float* scales, const GemmPart& part);
  // Bytes of GemmArgs::scratch for a part of up to `m` rows.
  int64_t (*part_scratch_bytes)(int64_t m, int64_t k);
  GemmCosts costs;

  int64_t Panels(int64_t n) const { return (n + panel_columns - 1) / panel_columns; }
  int64_t PackedBytes(int64_t k, int64_t n) const {
    const int64_t rows = (k + kBf16Depth - 1) / kBf16Depth * kBf16Depth;
    return Panels(n) * panel_columns * rows * static_cast<int64_t>(sizeof(uint16_t));
  }
  // Returns the part as GemmKernels::Partition does.
  GemmPart Partition(int64_t m, int64_t n, int parts, int part) const;
};

// Returns the kernels of the highest tier up to `isa`: bfloat16 is widened in registers, then
// multiplied.
const Bf16Kernels& Bf16KernelsFor(Isa isa);
// Returns the same by vector products of bfloat16 (AVX512_BF16); null where `isa` has none.
const Bf16Kernels* Bf16DotKernelsFor(Isa isa);
// Returns the same by the tile unit (AMX); null where `isa` has none.
const Bf16Kernels* TileBf16KernelsFor(Isa isa);

}  // namespace reprise::cpu
