// OwnValue: a value that a request brings for a promoted constant (see engine/load/promotion.h).
#pragma once

#include <cstring>

#include "runtime/graph/tensor.h"

namespace reprise {

struct OwnValue {
  int parameter = -1;  // the leaf that it stands for, see ParameterExpr
  Tensor value;        // has the dtype and shape of the constant

  // Requests of equal values share a replay: bits are compared, not numbers.
  friend bool operator==(const OwnValue& a, const OwnValue& b) {
    return a.parameter == b.parameter && a.value.bytes() == b.value.bytes() &&
           std::memcmp(a.value.data(), b.value.data(), a.value.bytes()) == 0;
  }
};

}  // namespace reprise
