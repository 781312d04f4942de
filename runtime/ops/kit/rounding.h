// The type in which elements are summed, shared by the operators that reduce.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/ops/kit/typed.h"

namespace reprise::ops {

// Floats in double; integers as their own width, wrapping.
template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
template <typename T>
T FromSum(Sum<T> sum) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(sum);
  } else {
    return static_cast<T>(static_cast<Compute<T>>(sum));
  }
}

}  // namespace reprise::ops
