// Weights that a model stores as int8 times a factor for each column of the product
// (runtime/ops/weights/quantized_weights.h). A kernel that widens int8 on its way reads a fourth of
// the bytes.
#pragma once

#include <optional>

#include "runtime/graph/parameter_expr.h"

namespace reprise::cpu {

struct Int8Weights {
  ParameterExprPtr values;  // int8, of the shape of the whole
  ParameterExprPtr scales;  // float32, [columns] or [1]; null: 1
};

// Splits `weights` [rows, columns], float32, into values times scales; the columns are dim `axis`,
// 0 or 1. Returns nothing where they are made in another way, have zero points, or have a factor
// for each row.
std::optional<Int8Weights> SplitInt8(const ParameterExprPtr& weights, int64_t axis);

}  // namespace reprise::cpu
