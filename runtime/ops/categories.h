// Which of a list of categories a number is: the first half of LabelEncoder and OneHotEncoder.
//
// reprise.CategoryIndex: inputs x, and keys [n] of the same dtype (float32, float64, integers), in
// any order; the result is int64, of x's shape: the place of the first key that equals the element,
// or n if there is none. What is no number equals what is none. With attribute `known` = 1 an
// element that is no category is reported, as an index n where n - 1 is the last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "runtime/ops/infer.h"

namespace reprise::ops {

inline constexpr char kCategoryIndex[] = "reprise.CategoryIndex";

// Orders numbers; behind them comes what is none.
template <typename T>
bool KeyIsBefore(T a, T b) {
  return a < b || (a == a && b != b);
}
// The places of `keys` in that order, of equal ones the first first.
template <typename T>
std::vector<int64_t> KeyOrder(absl::Span<const T> keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return KeyIsBefore(keys[a], keys[b]); });
  return order;
}

Rule CategoryIndexRule;
Kernel CategoryIndexKernel;

}  // namespace reprise::ops
