// The form that the internal products with weights share: x times a matrix, a bias, an activation,
// a residual.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"

namespace reprise::ops {

// Where such an op has its operands; x is 0, the matrix 1.
struct LinearForm {
  absl::string_view op;
  size_t bias;
  size_t residual;
};

inline constexpr LinearForm kLinearForms[] = {
    {LinearOp::kName, LinearOp::kBias, LinearOp::kResidual},
    {IntegerLinearOp::kName, IntegerLinearOp::kBias, IntegerLinearOp::kResidual}};

// Returns the form of `op`; nullptr for any other op.
inline const LinearForm* LinearFormOf(absl::string_view op) {
  for (const LinearForm& form : kLinearForms) {
    if (form.op == op) return &form;
  }
  return nullptr;
}

}  // namespace reprise::ops
