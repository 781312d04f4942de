// Whole operands as float and back, for kernels that compute in float at any storage type.
#pragma once

#include <vector>

#include "runtime/ops/kit/typed.h"

namespace reprise::ops {

// Returns the elements of a floating-point operand.
inline std::vector<float> FloatsOf(const TensorView& view) {
  std::vector<float> values(view.num_elements());
  (void)Dispatch(FloatList{}, view.dtype, [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<Compute<T>>(view.as<T>()[i]));
    }
  });
  return values;
}

// Writes `values`, which has as many elements as `out`, in the dtype of `out`.
inline absl::Status StoreFloats(const std::vector<float>& values, const MutableTensorView& out) {
  return Dispatch(FloatList{}, out.dtype, [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      out.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(values[i]));
    }
  });
}

}  // namespace reprise::ops
