// Products of bytes, summed exactly in int32 (u8s8s32 in the field's terms):
//
//   sum[i, j] = sum over k of (a[i, k] - a_zero[i]) * (b[k, j] - b_zero[j])
//   C[i, j]   = activation(sum * (a_scale[i] * b_scale[j]) + bias[j]) + residual[i, j]   float32
//   C[i, j]   = sum                                                                      int32
//   C[i, j]   = the former as steps of a byte, see ByteFinish                            u8 or s8
//
// Not to be taken for GemmKernels::part_int8, which widens int8 weights and multiplies floats.
//
// One side is of unsigned bytes and the other of signed ones, because CPUs multiply these: B is
// packed as signed bytes where A is unsigned, and as unsigned ones where A is signed; its zero
// points move with it. B lies in panels of `panel_columns` columns, in rows of words: four
// neighbours of a column lie in one word of 32 bits. The last panel is as wide as its columns need.
// In front of the panels lie the sums of all columns. Rows of A and C are read and written in
// place.
//
// The sums are exact (they wrap around like int32 does), so that the tier, batch-mates, threads and
// partition do not change a bit of them; their floats differ between tiers only by the activation.
//
// Threads: all functions are pure; calls on disjoint parts of one C may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/gemm/conv_finish.h"
#include "runtime/device/cpu/gemm/gemm.h"

namespace reprise::cpu {

// Bytes of either sign, and a step: 0 where one element serves all.
struct BytePoints {
  int At(int64_t i) const {
    if (data == nullptr) return 0;
    const auto byte = static_cast<const uint8_t*>(data)[i * step];
    return is_signed ? static_cast<int8_t>(byte) : byte;
  }
  const void* data = nullptr;  // null: all are 0
  int64_t step = 0;
  bool is_signed = false;
};

// The epilogue on floats that replaces U8S8Args::activation: the activation of a convolution,
// before or after which the residual is added; then QuantizeLinear, where there is a scale.
struct ByteFinish {
  ConvActivation activation;
  bool residual_first = false;
  const float* scale = nullptr;  // one scale for all of C; null: C is of floats
  BytePoints zero;               // signed like C
};

// Strides are in elements. `c` may be `residual` (same address, same stride), but not `a`.
struct U8S8Args {
  const void* a = nullptr;
  int64_t lda = 0;
  bool a_signed = false;
  const void* packed_b = nullptr;  // The result of `pack` for (k, n), aligned to a vector.
  bool b_signed = false;           // The sign of B before packing.
  // float; int32 where a_scale is null; bytes where `finish` has a scale
  void* c = nullptr;
  int64_t ldc = 0;
  int64_t n = 0;
  int64_t k = 0;
  BytePoints a_zero;               // one a row, by row of C
  BytePoints b_zero;               // one a column
  const float* a_scale = nullptr;  // one a row
  int64_t a_scale_step = 0;        // 0 or 1
  const float* b_scale = nullptr;  // one a column
  int64_t b_scale_step = 0;        // 0 or 1
  // These are read only where the sums become floats.
  const float* bias = nullptr;      // [n] or null.
  const float* residual = nullptr;  // [m, n] or null.
  int64_t ld_residual = 0;
  Activation activation = Activation::kNone;
  const ByteFinish* finish = nullptr;  // null: bias, activation, residual; C is of floats
};

// B as it lies in memory, row-major [k, n]; `ld` is the distance of two rows.
struct ByteSource {
  const void* data = nullptr;
  int64_t ld = 0;
  bool is_signed = false;
};

struct U8S8Kernels {
  int64_t panel_columns;
  int64_t column_grain;  // the width of a panel is a multiple of this
  int64_t tile_rows;
  // Writes PackedBytes(k, n) bytes, for products with A of that sign.
  void (*pack)(const ByteSource& b, bool a_signed, int64_t k, int64_t n, void* packed);
  void (*part)(const U8S8Args& args, const GemmPart& part);
  // `args.packed_b` is not read: panels of `b` are packed into `scratch` one by one, each
  // PanelBytes(k) bytes, aligned to a vector.
  void (*unpacked)(const U8S8Args& args, const ByteSource& b, const GemmPart& part, void* scratch);
  GemmCosts costs;

  int64_t Panels(int64_t n) const { return (n + panel_columns - 1) / panel_columns; }
  int64_t PanelBytes(int64_t k) const { return (k + 3) / 4 * 4 * panel_columns; }
  int64_t PackedBytes(int64_t k, int64_t n) const {
    const int64_t columns = (n + column_grain - 1) / column_grain * column_grain;
    return Panels(n) * panel_columns * static_cast<int64_t>(sizeof(int32_t)) +
           columns * ((k + 3) / 4 * 4);
  }
  // Returns the part as GemmKernels::Partition does.
  GemmPart Partition(int64_t m, int64_t n, int parts, int part) const;
};

// Returns the kernels of the highest tier up to `isa`. They use vector products of bytes
// (AVX512_VNNI, AVX-VNNI) where `isa` has them, else they widen to int16. All kernels of the tiers
// from AVX-512 on read the same packed bytes, whose rows of 16 words also suit a tile unit.
const U8S8Kernels& U8S8KernelsFor(Isa isa);

// Returns kernels for packed weights by the tile unit (AMX), which read the panels of
// U8S8KernelsFor and give its bits; null where `isa` has none. `unpacked` is null. Its speed has
// not been measured.
const U8S8Kernels* TileU8S8KernelsFor(Isa isa);

}  // namespace reprise::cpu
