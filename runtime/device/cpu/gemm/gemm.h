// C[m,n] = activation(A[m,k] * B[k,n] + bias[n]) + residual[m,n], float32.
//
// B is packed once (weights) into panels of `panel_columns` columns: panel p holds, row by row of
// B, the columns [p * panel_columns, (p + 1) * panel_columns), padded with zeros. The rows of A and
// C are read and written in place, any number of them at run time. Every element is summed in the
// order of k whatever the number of rows and however the work is divided, so that batch-mates,
// threads and buckets do not change a bit of an answer.
//
// Threads: all functions are pure; calls on disjoint parts of one C may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kGelu,
  kGeluTanh,
  kTanh,
  kSigmoid,
  kSilu,
  kQuickGelu,
  kGeluDoubled,
  kGeluTanhDoubled,
};

// The least L1 cache that holds a stretch of a panel with the rows of A, in bytes.
inline constexpr int64_t kRoomyCacheBytes = 48 * 1024;

// How a product of packed weights walks over its operands. The order of every sum is the same, and
// so is every bit of the result: only the caches see a difference, and which walk suits them best
// is measured (see KernelOption::question).
struct GemmBlocking {
  // The stretch to prefetch while a stretch of a panel is computed: the one after it, or the same
  // one of the next panel.
  enum class Fetch : uint8_t { kStretch, kPanel };
  // Whether lines that were prefetched far ahead into the L2 cache are prefetched again, close to
  // their use; kByRows lets the number of rows decide. For a lone tile kByRows prefetches into the
  // L1 cache, where that is roomy, far ahead.
  enum class Near : uint8_t { kByRows, kNo, kYes };

  int64_t row_tiles = 16;  // tiles of rows of A that stay in the cache while all panels pass by
  // The longest stretch of k, over which all tiles pass in turn. 0: the number of rows decides.
  int64_t depth = 0;
  Fetch fetch = Fetch::kStretch;
  Near near = Near::kByRows;
  // Up to this many row tiles widen a panel of int8 or halves in registers, each for itself; more
  // tiles have it widened once, in a buffer.
  int64_t narrow_tiles = 4;
};

// Strides are in elements. `c` may be `residual` (same address, same stride), but not `a`.
struct GemmArgs {
  const float* a = nullptr;
  int64_t lda = 0;
  const void* packed_b = nullptr;  // The result of `pack` for (k, n), aligned to a vector.
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t n = 0;
  int64_t k = 0;
  const float* bias = nullptr;      // [n] or null.
  const float* residual = nullptr;  // [m, n] or null.
  int64_t ld_residual = 0;
  Activation activation = Activation::kNone;
  GemmBlocking blocking;
  void* scratch = nullptr;  // GemmKernels::PartScratchBytes, aligned to a vector.
};

// B as it lies in memory: row-major [k, n], or [n, k] when `transposed`. `ld` is the distance of
// two rows as stored.
struct GemmSource {
  const float* data = nullptr;
  int64_t ld = 0;
  bool transposed = false;
};

// B as int8 times a factor for each column: w[i, j] = data[i, j] * scales[j].
struct Int8Source {
  const int8_t* data = nullptr;  // as in GemmSource
  int64_t ld = 0;
  bool transposed = false;
  const float* scales = nullptr;  // [n], or [1] with `one_scale`; null: 1
  bool one_scale = false;
};

// B as float16 or bfloat16.
struct HalfSource {
  const uint16_t* data = nullptr;  // as in GemmSource
  int64_t ld = 0;
  bool transposed = false;
};

// Activations times activations: nothing is packed ahead. Like GemmArgs otherwise.
struct UnpackedGemmArgs {
  GemmArgs gemm;  // packed_b is unused.
  GemmSource b;
  float scale = 1;           // factor of the whole product
  float* scratch = nullptr;  // UnpackedScratchFloats(k) floats, aligned to a vector.
};

// A rectangle of C: rows [row_begin, row_end), panels [panel_begin, panel_end).
struct GemmPart {
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
};

// The costs of a share of a product, for each row of the weights, in units of one multiplication of
// a row tile with that row of a panel.
struct GemmCosts {
  double panel = 2.0;      // the row of a panel: it comes from memory, or is converted
  double row_tile = 0.25;  // a tile of rows of A: it is read, or converted
  // The same where several threads wrote A's columns and several read them: half of them lie in
  // another core's cache.
  double shared_tile = 0.25;
};

struct GemmKernels {
  int64_t panel_columns;
  int64_t vector_columns;
  int64_t tile_rows;
  int64_t (*stretch_rows)() = nullptr;  // the usual GemmBlocking::depth for many rows
  // The same for `rows` rows, where a stretch should stay in the L1 cache though the usual one does
  // not; 0: there is no such choice.
  int64_t (*close_rows)(int64_t rows) = nullptr;
  // Writes PackedFloats(k, n) floats to `packed`; every element is multiplied by `scale`.
  void (*pack)(const GemmSource& b, int64_t k, int64_t n, float scale, float* packed) = nullptr;
  void (*part)(const GemmArgs& args, const GemmPart& part) = nullptr;
  void (*unpacked)(const UnpackedGemmArgs& args, const GemmPart& part) = nullptr;
  // Weights stored as int8: a fourth of the bytes, widened in registers. `pack_int8` writes
  // PackedInt8Bytes(k, n) bytes; `part_int8` is `part` for such a packed_b. The factor of a column
  // is applied to its sums at the end. With `int8_words` the layout is the one in
  // gemm_split_int8.cc.
  void (*pack_int8)(const Int8Source& b, int64_t k, int64_t n, float scale, void* packed) = nullptr;
  void (*part_int8)(const GemmArgs& args, const GemmPart& part) = nullptr;
  // Weights stored in half, widened in registers: half of the bytes. `pack_half` writes
  // PackedHalves(k, n) of them; the others are `part` for such a packed_b.
  void (*pack_half)(const HalfSource& b, int64_t k, int64_t n, uint16_t* packed) = nullptr;
  void (*part_float16)(const GemmArgs& args, const GemmPart& part) = nullptr;
  void (*part_bfloat16)(const GemmArgs& args, const GemmPart& part) = nullptr;
  // See PartScratchBytes; null: 0.
  int64_t (*part_scratch_bytes)(int64_t m, int64_t k, bool int8) = nullptr;
  GemmCosts costs = {};
  GemmCosts int8_costs = {};
  bool int8_words = false;

  int64_t Panels(int64_t n) const { return (n + panel_columns - 1) / panel_columns; }
  int64_t PackedFloats(int64_t k, int64_t n) const { return Panels(n) * panel_columns * k; }
  // Returns bytes of the factors of all columns, then the panels; with words offsets between them.
  int64_t PackedInt8Bytes(int64_t k, int64_t n) const {
    const int64_t of_column = int8_words ? 8 + (k + 3) / 4 * 4 : 4 + k;
    return Panels(n) * panel_columns * of_column;
  }
  int64_t PackedHalves(int64_t k, int64_t n) const { return PackedFloats(k, n); }
  int64_t UnpackedScratchFloats(int64_t k) const { return panel_columns * k; }
  // Bytes of GemmArgs::scratch for a part of up to `m` rows by `part` or, with `int8`, `part_int8`.
  int64_t PartScratchBytes(int64_t m, int64_t k, bool int8) const {
    return part_scratch_bytes == nullptr ? 0 : part_scratch_bytes(m, k, int8);
  }

  // Part `part` of `parts` of a product, chosen so that the slowest part is as fast as possible:
  // whole row tiles and whole panels, few rows split by panels because the weights' bandwidth is
  // their limit. The parts are disjoint and cover C; some are empty when there is too little work.
  // `int8` for part_int8.
  GemmPart Partition(int64_t m, int64_t n, bool int8, int parts, int part) const;
};

// Returns the kernels of the highest tier that is not above `isa`.
const GemmKernels& GemmKernelsFor(Isa isa);

// Returns the same over the same packed weights, whatever is packed multiplied by the tile unit of
// the CPU; null where `isa` has none. Pays from a few rows on. See gemm_amx.cc.
const GemmKernels* TileGemmKernelsFor(Isa isa);

// Returns the kernels for weights stored as int8 alone, which are packed in another way and
// multiplied as bytes, into which A's rows are split: up to kDeepestDigits deep. The other
// functions are null. Null where `isa` has no instruction for that. See gemm_split_int8.cc.
const GemmKernels* DigitGemmKernelsFor(Isa isa);
// The sums of deeper products may exceed 32 bits.
inline constexpr int64_t kDeepestDigits = int64_t{1} << 16;

}  // namespace reprise::cpu
