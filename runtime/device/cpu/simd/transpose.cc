#include "runtime/device/cpu/simd/transpose.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/simd/transpose.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The side of the smallest square that is transposed in registers.
constexpr int64_t kQuad = 4;

// Transposes four rows of a multiple of four columns.
HWY_INLINE void TurnFourRows(const float* from, int64_t ld_from, int64_t columns, float* to,
                             int64_t ld_to) {
  for (int64_t column = 0; column < columns; column += kQuad) {
    using Quad [[gnu::vector_size(16)]] = float;
    Quad v[kQuad];
    for (int64_t i = 0; i < kQuad; ++i) {
      std::memcpy(&v[i], from + i * ld_from + column, sizeof(Quad));
    }
    const Quad low01 = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    const Quad low23 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    const Quad high01 = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    const Quad high23 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    for (int64_t i = 0; i < kQuad; ++i) {
      std::memcpy(to + (column + i) * ld_to, &v[i], sizeof(Quad));
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kRows = kQuad;
constexpr auto* TurnRows = TurnFourRows;
#else
constexpr int64_t kRows = HWY_LANES(float);

// Transposes as many rows as a vector has lanes.
HWY_INLINE void TurnRows(const float* from, int64_t ld_from, int64_t columns, float* to,
                         int64_t ld_to) {
  const float* rows[kRows];
  for (int64_t i = 0; i < kRows; ++i) rows[i] = from + i * ld_from;
  TransposeWords(F32(), rows, columns, to, ld_to);
}
#endif

// Rows and columns that fill no square are transposed in one that overlaps its neighbour.
void TransposeMatrix(const float* from, int64_t ld_from, int64_t rows, int64_t columns, float* to,
                     int64_t ld_to) {
  if (rows < kQuad || columns < kQuad) {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) to[j * ld_to + i] = from[i * ld_from + j];
    }
    return;
  }
  const int64_t whole = columns / kQuad * kQuad, last = columns - kQuad;
  const auto turn = [&](auto* function, int64_t row) HWY_ATTR {
    function(from + row * ld_from, ld_from, whole, to + row, ld_to);
    if (whole == columns) return;
    function(from + row * ld_from + last, ld_from, kQuad, to + last * ld_to + row, ld_to);
  };
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) turn(TurnRows, row);
  if (rows - row > kQuad && rows >= kRows) {
    turn(TurnRows, rows - kRows);
  } else {
    for (; row < rows; row += kQuad) turn(TurnFourRows, std::min(row, rows - kQuad));
  }
}

}  // namespace

constexpr Transpose kTranspose = TransposeMatrix;

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

Transpose TransposeFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kTranspose); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
