#include "runtime/engine/model/guard_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/typed.h"

namespace reprise {
namespace {

// Returns whether all elements are within [lowest, highest]; NaN is not.
template <typename T>
bool AllWithin(const InputTensor& tensor, double lowest, double highest) {
  using C = ops::Compute<T>;
  C low = std::numeric_limits<C>::lowest(), high = std::numeric_limits<C>::max();
  if constexpr (std::is_floating_point_v<C>) {
    low = static_cast<C>(lowest);
    high = std::numeric_limits<C>::infinity();
  } else {
    // Bounds beyond the type's range become its own bounds.
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

// Whether the element of an index counts. A request's bytes need not be aligned.
template <typename T>
struct Counting {
  const char* data;
  std::optional<T> fill;  // the bits of elements that do not count
  bool masks = false;     // nor then a float so low that it is a mask, or NaN

  bool operator()(int64_t i) const {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    if (fill.has_value() && std::memcmp(&value, &*fill, sizeof(T)) == 0) return false;
    if constexpr (!std::is_integral_v<T>) {
      using C = ops::Compute<T>;
      if (masks) return static_cast<C>(value) > static_cast<C>(ops::kWeakestMask);
    }
    return true;
  }
};

template <typename T>
std::optional<T> BitsOf(std::optional<double> fill, DType dtype) {
  if (!fill.has_value()) return std::nullopt;
  char bytes[sizeof(double)];
  FillElements(dtype, *fill, 1, bytes);
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Returns whether every line along `axis_dim` of a tensor of `shape` counts at `places`.
template <class Counts>
bool EveryLineCounts(CountingPlaces places, const Shape& shape, const Counts& counts,
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
      int64_t i = row * row_elements + piece * piece_elements;
      const int64_t end = i + piece_elements;
      while (i < end && !counts(i)) ++i;
      if (i == end) return false;
    }
  }
  return true;
}

template <class Counts>
Hiding HidingBy(const Counts& counts, CountingPlaces places, const Shape& shape,
                absl::Span<const size_t> axis_dims) {
  const int64_t count = NumElements(shape);
  bool hides = false;
  for (int64_t i = 0; i < count; ++i) hides |= !counts(i);
  if (!hides) return Hiding::kNothing;
  const bool leaves = absl::c_all_of(
      axis_dims, [&](size_t dim) { return EveryLineCounts(places, shape, counts, dim); });
  return leaves ? Hiding::kSome : Hiding::kTooMuch;
}

}  // namespace

bool EveryRowCounts(CountingPlaces places, double fill, DType dtype, const InputTensor& tensor,
                    size_t axis_dim) {
  const auto* data = static_cast<const char*>(tensor.data);
  bool every = true;
  ops::DispatchSize(dtype, [&]<typename T>() {
    const Counting<T> counts = {data, BitsOf<T>(fill, dtype)};
    every = EveryLineCounts(places, tensor.shape, counts, axis_dim);
  });
  return every;
}

Hiding HidingOf(CountingPlaces places, std::optional<double> fill, DType dtype,
                const InputTensor& tensor, absl::Span<const size_t> axis_dims) {
  const auto* data = static_cast<const char*>(tensor.data);
  Hiding result = Hiding::kNothing;
  const auto look = [&]<typename T>() {
    const Counting<T> counts = {data, BitsOf<T>(fill, dtype), /*masks=*/true};
    result = HidingBy(counts, places, tensor.shape, axis_dims);
  };
  // In tensors of other types every element counts that differs from the fill.
  if (!ops::Dispatch(ops::FloatList(), dtype, look).ok()) ops::DispatchSize(dtype, look);
  return result;
}

bool HoldsWhatWasProved(DType dtype, const InputTensor& tensor, double fill, bool is_mask) {
  // Samples and features may have any values.
  if (!is_mask && dtype != DType::kInt64 && dtype != DType::kInt32) return true;
  const double lowest = std::min(fill, 0.0);
  const double highest = is_mask ? std::max(fill, 1.0) : std::numeric_limits<double>::infinity();
  bool within = true;
  const absl::Status known = ops::Dispatch(ops::NumericList(), dtype, [&]<typename T>() {
    within = AllWithin<T>(tensor, lowest, highest);
  });
  return within || !known.ok();
}

bool AllLengthsUpTo(int64_t most, DType dtype, const InputTensor& tensor) {
  bool within = true;
  const absl::Status known = ops::Dispatch(ops::NumericList(), dtype, [&]<typename T>() {
    within = AllWithin<T>(tensor, 0, static_cast<double>(most));
  });
  return within || !known.ok();
}

}  // namespace reprise
