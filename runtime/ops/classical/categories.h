// Which of a list of categories a number is: the first half of LabelEncoder and OneHotEncoder.
//
// reprise.CategoryIndex: inputs x, and keys [n] of the same dtype (float32, float64, integers), in
// any order; the result is int64, of x's shape: the place of the first key that equals the element,
// or n if there is none. NaN equals NaN. With attribute `known` = 1 an element that is no category
// is reported, as an index n where n - 1 is the last. With attribute `text` = 1 as well the
// elements are places of texts (see graph/vocabulary.h): an unknown one is reported as itself,
// unless it is padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/ops/classical/classical_op.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Orders numbers; NaN comes after them.
template <typename T>
bool KeyIsBefore(T a, T b) {
  return a < b || (a == a && b != b);
}
// Returns the indices of `keys` in that order, of equal ones the first first.
template <typename T>
std::vector<int64_t> KeyOrder(absl::Span<const T> keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return KeyIsBefore(keys[a], keys[b]); });
  return order;
}

// How an element that is no category is reported.
struct UnknownCategory {
  bool report = false;  // whether it is reported at all
  bool text = false;
  int64_t missing = 0;        // the number of categories
  int64_t low = 0, high = 0;  // the least and the greatest of them, where they are texts

  // `errors` takes (operand, element, value, low, high).
  template <typename T, typename Report>
  void Tell(T x, int64_t element, Report errors) const {
    if (!report) return;
    if (!text) return errors(0, element, missing, 0, missing - 1);
    const auto place = static_cast<int64_t>(x);
    if (place != Vocabulary::kNoText) errors(0, element, place, low, high);
  }
};
template <typename T>
UnknownCategory UnknownCategoryOf(const Attributes& attributes, absl::Span<const T> keys) {
  UnknownCategory unknown = {.report = attributes.Int("known", 0) != 0,
                             .text = attributes.Int("text", 0) != 0,
                             .missing = static_cast<int64_t>(keys.size())};
  if (unknown.text && !keys.empty()) {
    unknown.low = static_cast<int64_t>(*std::min_element(keys.begin(), keys.end()));
    unknown.high = static_cast<int64_t>(*std::max_element(keys.begin(), keys.end()));
  }
  return unknown;
}

Rule CategoryIndexRule;
Kernel CategoryIndexKernel;

}  // namespace reprise::ops
