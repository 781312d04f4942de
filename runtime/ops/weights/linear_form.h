// The form that the internal products with weights share: x times a matrix, a bias, an activation,
// a residual.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace reprise::ops {

// Where such an op has its operands; x is 0, the matrix 1.
struct LinearForm {
  absl::string_view op;
  size_t bias;
  size_t residual;
};

inline constexpr LinearForm kLinearForms[] = {{"reprise.Linear", 2, 3},
                                              {"reprise.IntegerLinear", 6, 7}};

// The form of `op`; nullptr for any other op.
inline const LinearForm* LinearFormOf(absl::string_view op) {
  for (const LinearForm& form : kLinearForms) {
    if (form.op == op) return &form;
  }
  return nullptr;
}

}  // namespace reprise::ops
