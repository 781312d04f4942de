// SizePolynomial: a number made of the sizes of axes by sums and products, known for all of them.
//
// Products are of different axes, so that it is a straight line along each: its extremes over
// ranges of sizes lie where all sizes are extreme.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace reprise {

class SizePolynomial {
 public:
  // Models of more axes are not followed.
  static constexpr size_t kMaxAxes = 4;

  explicit SizePolynomial(size_t axes) : factors_(size_t{1} << axes, 0.0) {}
  static SizePolynomial Constant(size_t axes, double value);
  // The one that has `values[i]` at sizes[axis] = low[axis], or high[axis] where bit `axis` of i is
  // set.
  static SizePolynomial Through(absl::Span<const double> values, absl::Span<const int64_t> low,
                                absl::Span<const int64_t> high);

  double At(absl::Span<const int64_t> sizes) const;
  // Its least and its largest value over sizes from 1 to `largest`.
  std::pair<double, double> Range(absl::Span<const int64_t> largest) const;
  bool DependsOn(size_t axis) const;
  bool is_constant() const;
  // Bit i: it depends on axis i.
  size_t axes() const;
  // All but what does not depend on a size are multiples of `step`, and that is a whole number.
  bool StepsBy(double step) const;
  // The whole number that makes this of `other` for all sizes.
  std::optional<double> MultipleOf(const SizePolynomial& other) const;
  bool is_whole() const;
  // One product of sizes, times a number above zero: neither zero nor below at any size.
  bool is_positive_product() const;

  SizePolynomial operator-(const SizePolynomial& other) const;

 private:
  std::vector<double> factors_;  // bit i of the index: times the size of axis i
};

}  // namespace reprise
