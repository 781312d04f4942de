// Weights that a model stores in a few bits, with a factor for each block of them along k
// (block_weights.h and stored_floats.h of runtime/ops/weights, and DequantizeLinear with a
// block_size).
#pragma once

#include <optional>

#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/graph/parameter_expr.h"

namespace reprise::cpu {

struct BlockWeights {
  // One row for each column of the product: u8 [n, bytes], numbers of `bits` bits packed with the
  // low bits first; or s8 or u8 [n, k] where `bits` is 8.
  ParameterExprPtr numbers;
  ParameterExprPtr scales;  // float32 [n, blocks]
  // [n, blocks] of float32, s8 or u8, or u8 [n, bytes] packed like the numbers; null: `point`.
  // With `offsets` float32 numbers that are added instead: see BlockForm.
  ParameterExprPtr points;
  bool offsets = false;
  int bits = 4;       // 2, 4 or 8
  int kept_bits = 4;  // bits that a packed number takes: 4 of 8 where it comes from an int4
  int64_t block = 0;
  int point = 0;

  bool is_signed() const { return numbers->dtype() == DType::kInt8; }
  // Returns how kernels read them.
  BlockForm Form() const;
};

// Weights that a model stores as int8 times a factor for each column of the product
// (runtime/ops/weights/quantized_weights.h). A kernel that widens int8 on its way reads a fourth of
// the bytes.
struct Int8Weights {
  ParameterExprPtr values;  // int8, of the shape of the whole
  ParameterExprPtr scales;  // float32, [columns] or [1]; null: 1
};

// Splits `weights` [rows, columns], float32, into values times scales; the columns are dim `axis`,
// 0 or 1. Returns nothing where they are made in another way, have zero points, or have a factor
// for each row.
std::optional<Int8Weights> SplitInt8(const ParameterExprPtr& weights, int64_t axis);

// Splits `weights`, a float32 matrix whose columns are dim `axis`, 0 or 1. Returns nothing where
// they are made in another way, or of blocks that no kernel reads.
std::optional<BlockWeights> SplitBlocks(const ParameterExprPtr& weights, int64_t axis);
// Splits weights that are stored as int8 with a factor for each column (SplitInt8), or one for
// all: each column is a block. Returns nothing where they are made in another way.
std::optional<BlockWeights> SplitColumns(const ParameterExprPtr& weights, int64_t axis);

}  // namespace reprise::cpu
