// Kernels over rows, float32: normalisations, softmax, sums of table rows. A row lies side by side;
// rows follow each other densely.
//
// Threads: pure; calls on disjoint row ranges may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// y = (s - mean(s)) / sqrt(var(s) + epsilon) * gamma + beta, s = x + residual; without `centred`
// the mean is left out and the mean square takes the place of the variance (RMSNorm).
struct NormArgs {
  const float* x = nullptr;         // [rows, size]
  const float* residual = nullptr;  // [residual_rows, size], row r uses r % residual_rows; or null
  int64_t residual_rows = 1;
  const float* gamma = nullptr;  // [size], or null for ones
  const float* beta = nullptr;   // [size], or null for zeros
  float* y = nullptr;            // [rows, size]; may be x, or a residual of the same shape
  float* sum = nullptr;          // [rows, size] gets s, or null; not y
  int64_t size = 0;
  float epsilon = 0;
  bool centred = true;
};

// The reduction of a row or of a column. NaN in an operand gives NaN.
enum class Fold : uint8_t { kSum, kMax, kMin, kProduct, kSumOfSquares, kSumOfMagnitudes };

inline constexpr int64_t kSoftmaxColumns = 512;

struct RowKernels {
  void (*norm)(const NormArgs& args, int64_t row_begin, int64_t row_end);

  // Softmax of rows of `size`. y may be x. A row of -inf gives NaN.
  void (*softmax)(const float* x, float* y, int64_t size, int64_t row_begin, int64_t row_end);

  // y = x * cosine + rotated * sine for one row of an even size; `rotated` is its second half,
  // negated, before its first. y may be x.
  void (*rotary)(const float* x, const float* cosine, const float* sine, float* y, int64_t size);

  // out[0..size) = the sum of `count` >= 1 rows of floats, each at any address.
  void (*sum_rows)(const std::byte* const* rows, int count, int64_t size, float* out);

  // out[0..size) += the sum of `count` rows, each a float factor, a float zero
  // point and, right after them, `size` int8, which the zero point is taken off.
  void (*add_int8_rows)(const std::byte* const* rows, int count, int64_t size, float* out);

  // out[0..size) = sum over r of weights[r] * x[r][0..size), times `scale`; `weights` null: ones.
  // Rows of x are `stride` apart.
  void (*weighted_sum)(const float* x, int64_t stride, const float* weights, int64_t rows,
                       int64_t size, float scale, float* out);

  // out[r] = row r folded, times `scale`; rows have at least one element.
  void (*fold_rows)(Fold fold, const float* x, int64_t size, float scale, float* out,
                    int64_t row_begin, int64_t row_end);

  // out[0..size) = `rows` >= 1 rows folded into one. Rows of x are `stride` apart.
  void (*fold_columns)(Fold fold, const float* x, int64_t stride, int64_t rows, int64_t size,
                       float* out);

  // The logarithm of the softmax of rows of `size`. y may be x.
  void (*log_softmax)(const float* x, float* y, int64_t size, int64_t row_begin, int64_t row_end);

  // The softmax, or its logarithm, of each of `size` <= kSoftmaxColumns columns of `rows` >= 1
  // elements. Rows of x and of y are `stride` apart. y may be x. A column of -inf gives NaN.
  void (*softmax_columns)(bool log, const float* x, int64_t stride, int64_t rows, int64_t size,
                          float* y);
};

// Returns the kernels of the highest tier that is not above `isa`.
const RowKernels& RowKernelsFor(Isa isa);

}  // namespace reprise::cpu
