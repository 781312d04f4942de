#include "runtime/bucket/size_measure.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/saturating.h"

namespace reprise {

SizeMeasure::SizeMeasure(size_t num_axes, const std::vector<std::vector<size_t>>& inputs) {
  std::vector<std::vector<size_t>> all = inputs;
  for (size_t axis = 0; axis < num_axes; ++axis) all.push_back({axis});
  for (std::vector<size_t>& input : all) {
    std::sort(input.begin(), input.end());
    input.erase(std::unique(input.begin(), input.end()), input.end());
  }
  // Inputs with the most axes first: an input within another one then comes after it.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  for (std::vector<size_t>& input : all) {
    const bool counted = std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& other) {
      return std::includes(other.begin(), other.end(), input.begin(), input.end());
    });
    if (!counted && !input.empty()) inputs_.push_back(std::move(input));
  }
}

int64_t SizeMeasure::Elements(absl::Span<const int64_t> sizes) const {
  const auto multiply = [](int64_t product, int64_t size) {
    return SaturatingProduct(product, std::max<int64_t>(size, 1));
  };
  int64_t elements = 0;
  for (const std::vector<size_t>& input : inputs_) {
    int64_t product = 1;
    for (const size_t axis : input) product = multiply(product, sizes[axis]);
    if (__builtin_add_overflow(elements, product, &elements)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  if (!inputs_.empty()) return elements;
  elements = 1;
  for (const int64_t size : sizes) elements = multiply(elements, size);
  return elements;
}

SizeMeasure SizeMeasure::Of(absl::Span<const size_t> positions) const {
  if (inputs_.empty()) return {};
  std::vector<std::vector<size_t>> inputs;
  for (const std::vector<size_t>& input : inputs_) {
    std::vector<size_t>& some = inputs.emplace_back();
    for (size_t i = 0; i < positions.size(); ++i) {
      if (std::binary_search(input.begin(), input.end(), positions[i])) some.push_back(i);
    }
  }
  return SizeMeasure(positions.size(), inputs);
}

}  // namespace reprise
