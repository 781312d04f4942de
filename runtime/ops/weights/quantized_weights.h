// Weights that a model stores as bytes, as its prepare program shows: `Mul(Cast(p1), p2)` and its
// relatives (DequantizeLinear, transposed, concatenated) are bytes times a factor for each column
// of the product.
#pragma once

#include <optional>

#include "runtime/graph/parameter_expr.h"

namespace reprise::ops {

// (values - points) * scales
struct QuantizedWeights {
  ParameterExprPtr values;  // s8 or u8, of the shape of the whole
  ParameterExprPtr scales;  // float32, [columns] or [1]; null: 1
  ParameterExprPtr points;  // same dtype as the values, [columns] or [1]; null: 0
};

// Returns `weights` [rows, columns], float32, in these parts; the columns are dim `axis`, 0 or 1.
// Nothing where it is made in another way, or its factors belong to rows.
std::optional<QuantizedWeights> SplitQuantized(const ParameterExprPtr& weights, int64_t axis);

}  // namespace reprise::ops
