// Products and sums of sizes that saturate at the largest integer: capacities and costs of many
// axes at once, which are compared and never allocated.
#pragma once

#include <cstdint>
#include <limits>

namespace reprise {

// Returns a * b for a, b >= 0.
inline int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

// Returns a + b for a, b >= 0.
inline int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

}  // namespace reprise
