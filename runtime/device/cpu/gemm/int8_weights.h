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

// `weights` [rows, columns], float32, as values times scales; the columns are dim `axis`, 0 or 1.
// Nothing where it is made in another way, has zero points, or its factors belong to
// rows.
std::optional<Int8Weights> SplitInt8(const ParameterExprPtr& weights, int64_t axis);

}  // namespace reprise::cpu
