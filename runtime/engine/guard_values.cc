#include "runtime/engine/guard_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/engine/gather.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/axis_rules.h"
#include "runtime/ops/typed.h"

namespace reprise {
namespace {

// All elements are within [lowest, highest]; no number is.
template <typename T>
bool AllWithin(const InputTensor& tensor, double lowest, double highest) {
  using C = ops::Compute<T>;
  C low = std::numeric_limits<C>::lowest(), high = std::numeric_limits<C>::max();
  if constexpr (std::is_floating_point_v<C>) {
    low = static_cast<C>(lowest);
    high = std::numeric_limits<C>::infinity();
  } else {
    // Bounds that the type cannot hold are its own.
    if (lowest > static_cast<double>(low)) low = static_cast<C>(lowest);
    if (highest < static_cast<double>(high)) high = static_cast<C>(highest);
  }
  const auto* data = static_cast<const char*>(tensor.data);
  const int64_t count = NumElements(tensor.shape);
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, data + i * sizeof(T), sizeof(T));
    const C value = element;
    outside |= value < low;
    outside |= value > high;
  }
  return !outside;
}

// A byte for each element: whether `counts` holds of it. A request's bytes need not be aligned.
template <typename T, typename F>
std::vector<uint8_t> Each(const InputTensor& tensor, const F& counts) {
  const auto* data = static_cast<const char*>(tensor.data);
  std::vector<uint8_t> result(NumElements(tensor.shape));
  for (size_t i = 0; i < result.size(); ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    result[i] = counts(value) ? 1 : 0;
  }
  return result;
}

// Whether every line along `axis_dim` of what has `shape` counts at `places`.
bool EveryLineCounts(CountingPlaces places, const Shape& shape, absl::Span<const uint8_t> counts,
                     size_t axis_dim) {
  // A row of one line is a piece that must hold it; so are all its places, or the first of them.
  int64_t pieces = 1, piece_elements = 1, rows = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < axis_dim ? rows : piece_elements) *= shape[d];
  const int64_t row_elements = piece_elements;
  if (places >= CountingPlaces::kFirst && shape[axis_dim] > 0) {
    piece_elements /= shape[axis_dim];
    if (places == CountingPlaces::kAll) pieces = shape[axis_dim];
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const auto of_piece =
          counts.subspan(row * row_elements + piece * piece_elements, piece_elements);
      if (!absl::c_linear_search(of_piece, 1)) return false;
    }
  }
  return true;
}

std::vector<uint8_t> DiffersFrom(double fill, DType dtype, const InputTensor& tensor) {
  char fill_bytes[sizeof(double)];
  FillElements(dtype, fill, 1, fill_bytes);
  std::vector<uint8_t> result;
  ops::DispatchSize(dtype, [&]<typename T>() {
    T filled;
    std::memcpy(&filled, fill_bytes, sizeof(T));
    result = Each<T>(tensor, [&](T value) { return value != filled; });
  });
  return result;
}

// Of floats that are added to scores; no number hides as well.
std::vector<uint8_t> IsAboveMasks(DType dtype, const InputTensor& tensor) {
  std::vector<uint8_t> result(NumElements(tensor.shape), 1);
  const absl::Status floats = ops::Dispatch(ops::FloatList(), dtype, [&]<typename T>() {
    constexpr auto kLowest = static_cast<ops::Compute<T>>(ops::kWeakestMask);
    result = Each<T>(tensor, [](T value) { return value > kLowest; });
  });
  return result;  // Of other types all count.
}

}  // namespace

bool EveryRowCounts(CountingPlaces places, double fill, DType dtype, const InputTensor& tensor,
                    size_t axis_dim) {
  return EveryLineCounts(places, tensor.shape, DiffersFrom(fill, dtype, tensor), axis_dim);
}

Hiding HidingOf(CountingPlaces places, std::optional<double> fill, DType dtype,
                const InputTensor& tensor, absl::Span<const size_t> axis_dims) {
  std::vector<uint8_t> counts = IsAboveMasks(dtype, tensor);
  if (fill.has_value()) {
    const std::vector<uint8_t> differs = DiffersFrom(*fill, dtype, tensor);
    for (size_t i = 0; i < counts.size(); ++i) counts[i] &= differs[i];
  }
  if (!absl::c_linear_search(counts, 0)) return Hiding::kNothing;
  const bool leaves = absl::c_all_of(
      axis_dims, [&](size_t dim) { return EveryLineCounts(places, tensor.shape, counts, dim); });
  return leaves ? Hiding::kSome : Hiding::kTooMuch;
}

bool HoldsWhatWasProved(DType dtype, const InputTensor& tensor, double fill, bool is_mask) {
  // Samples and features may be anything.
  if (!is_mask && dtype != DType::kInt64 && dtype != DType::kInt32) return true;
  const double lowest = std::min(fill, 0.0);
  const double highest = is_mask ? std::max(fill, 1.0) : std::numeric_limits<double>::infinity();
  bool within = true;
  const absl::Status known = ops::Dispatch(ops::NumericList(), dtype, [&]<typename T>() {
    within = AllWithin<T>(tensor, lowest, highest);
  });
  return within || !known.ok();
}

}  // namespace reprise
