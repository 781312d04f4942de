#include "runtime/certify/size_numbers.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"

namespace reprise {
namespace {

// A number this near to a whole one is that one: it is a sum of a few products of sizes.
constexpr double kNear = 1e-7;

bool IsWhole(double value) { return value == std::round(value); }

double Snapped(double value) {
  return std::abs(value - std::round(value)) < kNear ? std::round(value) : value;
}

}  // namespace

SizePolynomial SizePolynomial::Constant(size_t axes, double value) {
  SizePolynomial result(axes);
  result.factors_[0] = value;
  return result;
}

SizePolynomial SizePolynomial::Through(absl::Span<const double> values,
                                       absl::Span<const int64_t> low,
                                       absl::Span<const int64_t> high) {
  SizePolynomial result(low.size());
  result.factors_.assign(values.begin(), values.end());
  for (size_t axis = 0; axis < low.size(); ++axis) {
    const size_t bit = size_t{1} << axis;
    for (size_t i = 0; i < values.size(); ++i) {
      if ((i & bit) != 0) continue;
      double& start = result.factors_[i];
      double& slope = result.factors_[i | bit];
      slope = (slope - start) / static_cast<double>(high[axis] - low[axis]);
      start -= slope * static_cast<double>(low[axis]);
    }
  }
  for (double& factor : result.factors_) factor = Snapped(factor);
  return result;
}

double SizePolynomial::At(absl::Span<const int64_t> sizes) const {
  double sum = 0;
  for (size_t i = 0; i < factors_.size(); ++i) {
    double product = factors_[i];
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if ((i >> axis & 1) != 0) product *= static_cast<double>(sizes[axis]);
    }
    sum += product;
  }
  return sum;
}

std::pair<double, double> SizePolynomial::Range(absl::Span<const int64_t> largest) const {
  std::pair<double, double> range(INFINITY, -INFINITY);
  for (size_t corner = 0; corner < factors_.size(); ++corner) {
    std::vector<int64_t> sizes;
    for (size_t axis = 0; axis < largest.size(); ++axis) {
      sizes.push_back((corner >> axis & 1) != 0 ? largest[axis] : 1);
    }
    const double value = At(sizes);
    range = {std::min(range.first, value), std::max(range.second, value)};
  }
  return range;
}

size_t SizePolynomial::axes() const {
  size_t axes = 0;
  for (size_t i = 0; i < factors_.size(); ++i) axes |= factors_[i] != 0 ? i : 0;
  return axes;
}

bool SizePolynomial::DependsOn(size_t axis) const { return (axes() >> axis & 1) != 0; }
bool SizePolynomial::is_constant() const { return axes() == 0; }
bool SizePolynomial::is_whole() const { return absl::c_all_of(factors_, IsWhole); }

bool SizePolynomial::is_positive_product() const {
  const auto there = [](double factor) { return factor != 0; };
  return absl::c_count_if(factors_, there) == 1 && *absl::c_find_if(factors_, there) > 0;
}

bool SizePolynomial::StepsBy(double step) const {
  if (step == 0 || !is_whole()) return false;
  for (size_t i = 1; i < factors_.size(); ++i) {
    if (!IsWhole(factors_[i] / step)) return false;
  }
  return true;
}

std::optional<double> SizePolynomial::MultipleOf(const SizePolynomial& other) const {
  std::optional<double> times;
  for (size_t i = 0; i < factors_.size(); ++i) {
    if (other.factors_[i] == 0) {
      if (factors_[i] != 0) return std::nullopt;
      continue;
    }
    const double here = factors_[i] / other.factors_[i];
    if (!IsWhole(here) || (times.has_value() && *times != here)) return std::nullopt;
    times = here;
  }
  return times;
}

SizePolynomial SizePolynomial::operator-(const SizePolynomial& other) const {
  SizePolynomial result = *this;
  for (size_t i = 0; i < factors_.size(); ++i) result.factors_[i] -= other.factors_[i];
  return result;
}

}  // namespace reprise
