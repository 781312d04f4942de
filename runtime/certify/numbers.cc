#include "runtime/certify/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/elements.h"

namespace reprise {
namespace {

template <typename T>
void Store(const std::vector<double>& values, void* data) {
  T* out = static_cast<T*>(data);
  for (double value : values) {
    // 2^63 as a double is above the largest int64: the upper bound itself must not be cast.
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      *out++ = std::numeric_limits<T>::max();
    } else {
      *out++ =
          static_cast<T>(std::max(value, static_cast<double>(std::numeric_limits<T>::lowest())));
    }
  }
}

void StoreAs(DType dtype, const std::vector<double>& values, void* data) {
  switch (dtype) {
    case DType::kFloat32:
      return Store<float>(values, data);
    case DType::kFloat64:
      return Store<double>(values, data);
    case DType::kFloat16:
      absl::c_transform(values, static_cast<uint16_t*>(data), [](double v) {
        return FloatToHalf(static_cast<float>(std::clamp(v, -65504.0, 65504.0)));
      });
      return;
    case DType::kBFloat16:
      absl::c_transform(values, static_cast<uint16_t*>(data),
                        [](double v) { return FloatToBFloat16(static_cast<float>(v)); });
      return;
    case DType::kBool:
      absl::c_transform(values, static_cast<uint8_t*>(data),
                        [](double v) -> uint8_t { return v != 0; });
      return;
    case DType::kInt8:
      return Store<int8_t>(values, data);
    case DType::kUInt8:
      return Store<uint8_t>(values, data);
    case DType::kInt16:
      return Store<int16_t>(values, data);
    case DType::kUInt16:
      return Store<uint16_t>(values, data);
    case DType::kInt32:
      return Store<int32_t>(values, data);
    case DType::kUInt32:
      return Store<uint32_t>(values, data);
    case DType::kInt64:
      return Store<int64_t>(values, data);
    case DType::kUInt64:
      return Store<uint64_t>(values, data);
    case DType::kUndefined:
      return;
  }
}

// Calls `f(i, j, n)` for every line of `n` elements along the last dim of a box of `shape`, i the
// flat index of its first element in the box, j that in `outer`, where the box starts at `offset`.
template <typename F>
void ForEachLine(const Shape& shape, const Shape& outer, const Shape& offset, F&& f) {
  REPRISE_CHECK(shape.size() == outer.size() && offset.size() == outer.size());
  for (size_t d = 0; d < shape.size(); ++d) REPRISE_CHECK(offset[d] + shape[d] <= outer[d]);
  const int64_t count = NumElements(shape);
  if (count == 0) return;
  const int64_t length = shape.empty() ? 1 : shape.back();
  const Shape strides = Strides(outer);
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < count; i += length) {
    int64_t j = 0;
    for (size_t d = 0; d < index.size(); ++d) j += (offset[d] + index[d]) * strides[d];
    f(i, j, length);
    for (size_t d = shape.empty() ? 0 : shape.size() - 1; d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

Shape Unflatten(int64_t flat, const Shape& shape) {
  Shape index;
  for (int64_t stride : Strides(shape)) {
    index.push_back(flat / stride);
    flat %= stride;
  }
  return index;
}

bool Same(double expected, double actual, double allowed) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) == std::isnan(actual);
  if (expected == actual) return true;  // infinities too
  return std::abs(expected - actual) <= allowed;
}

template <typename T>
double LargestIn(absl::Span<const T> values) {
  double largest = 0;
  for (double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// `tolerance` is of the largest finite element of `want`, or of `usual`.
template <typename T>
std::optional<std::string> DifferIn(absl::Span<const T> want, absl::Span<const T> got,
                                    const Shape& shape, const Shape& outer, const Shape& offset,
                                    double tolerance, double usual) {
  const double largest = std::max(usual, LargestIn(want));
  const double allowed = tolerance * largest;
  // The element that is furthest off says most.
  int64_t worst = -1;
  double worst_error = -1;
  double worst_got = 0;
  ForEachLine(shape, outer, offset, [&](int64_t i, int64_t j, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      if (Same(want[i + k], got[j + k], allowed)) continue;
      const double difference = std::abs(double{want[i + k]} - double{got[j + k]});
      const double error =
          std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
      if (error <= worst_error) continue;
      worst = i + k;
      worst_error = error;
      worst_got = got[j + k];
    }
  });
  if (worst < 0) return std::nullopt;
  std::string words = absl::StrCat("at ", ShapeToString(Unflatten(worst, shape)), ": ",
                                   double{want[worst]}, " against ", worst_got);
  if (largest > 0 && std::isfinite(worst_error)) {
    absl::StrAppend(&words, ", off by ", worst_error / largest, " of the largest element");
  }
  return words;
}

}  // namespace

Tensor ToTensor(const Numbers& numbers) {
  return Tensor::Make(numbers.dtype, numbers.shape,
                      [&](void* data) { StoreAs(numbers.dtype, numbers.values, data); });
}

Numbers FromTensor(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), tensor.ToDoubles()};
}

void Paste(const Numbers& source, const Shape& offset, Numbers& target) {
  ForEachLine(source.shape, target.shape, offset, [&](int64_t i, int64_t j, int64_t n) {
    std::copy_n(source.values.begin() + i, n, target.values.begin() + j);
  });
}

std::optional<std::string> Differ(const Tensor& expected, const Tensor& actual, const Shape& offset,
                                  double tolerance, double usual) {
  if (expected.dtype() == DType::kFloat32) {
    return DifferIn(expected.span<float>(), actual.span<float>(), expected.shape(), actual.shape(),
                    offset, tolerance, usual);
  }
  const std::vector<double> want = expected.ToDoubles();
  const std::vector<double> got = actual.ToDoubles();
  return DifferIn(absl::MakeConstSpan(want), absl::MakeConstSpan(got), expected.shape(),
                  actual.shape(), offset, IsFloating(expected.dtype()) ? tolerance : 0, usual);
}

size_t DimsOfCopies(const Tensor& tensor, size_t end) {
  size_t bytes = tensor.bytes();
  for (size_t d = 0; d < end; ++d) {
    const auto places = static_cast<size_t>(tensor.shape()[d]);
    if (places == 0) return d;
    const size_t part = bytes / places;
    const auto* data = static_cast<const uint8_t*>(tensor.data());
    if (bytes > part && std::memcmp(data, data + part, bytes - part) != 0) return d;
    bytes = part;
  }
  return end;
}

Tensor FirstOfCopies(const Tensor& tensor, size_t dims) {
  if (dims == 0) return tensor;
  Shape shape = tensor.shape();
  std::fill_n(shape.begin(), dims, 1);
  const auto bytes = NumElements(shape) * static_cast<int64_t>(DTypeSize(tensor.dtype()));
  return Tensor::Make(tensor.dtype(), shape, [&](void* data) {
    std::memcpy(data, tensor.data(), static_cast<size_t>(bytes));
  });
}

double LargestOf(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) return LargestIn(tensor.span<float>());
  return LargestIn(absl::MakeConstSpan(tensor.ToDoubles()));
}

bool MayBeRounding(const Tensor& expected, const Tensor& actual, const Shape& offset) {
  constexpr int64_t kFewElements = 64;
  return expected.num_elements() <= kFewElements &&
         !Differ(expected, actual, offset, /*tolerance=*/1e-2).has_value();
}

double UsualSize(std::vector<double> sizes) {
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

bool HasFinite(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) {
    return absl::c_any_of(tensor.span<float>(), [](float value) { return std::isfinite(value); });
  }
  if (!IsFloating(tensor.dtype())) return tensor.num_elements() > 0;
  return !AllElements(tensor, [](double value) { return !std::isfinite(value); });
}

}  // namespace reprise
