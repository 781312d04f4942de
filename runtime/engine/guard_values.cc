#include "runtime/engine/guard_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/engine/gather.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"

namespace reprise {
namespace {

// All elements of `T` are within [lowest, highest]; no number is.
template <typename T>
bool AllWithin(const InputTensor& tensor, double lowest, double highest) {
  T low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  if constexpr (std::numeric_limits<T>::is_iec559) {
    low = static_cast<T>(lowest);
    high = static_cast<T>(highest);
  } else {
    // Bounds that the type cannot hold are its own.
    if (lowest > static_cast<double>(low)) low = static_cast<T>(lowest);
    if (highest < static_cast<double>(high)) high = static_cast<T>(highest);
  }
  const auto* data = static_cast<const char*>(tensor.data);
  const int64_t count = NumElements(tensor.shape);
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    outside |= value < low;
    outside |= value > high;
  }
  return !outside;
}

}  // namespace

bool EveryRowCounts(CountingPlaces places, double fill, DType dtype, const InputTensor& tensor,
                    size_t axis_dim) {
  // A row of one line is a piece that must hold it; so are all its places, or the first of them.
  int64_t pieces = 1, piece_elements = 1, rows = 1;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    (d < axis_dim ? rows : piece_elements) *= tensor.shape[d];
  }
  const int64_t row_elements = piece_elements;
  if (places >= CountingPlaces::kFirst && tensor.shape[axis_dim] > 0) {
    piece_elements /= tensor.shape[axis_dim];
    if (places == CountingPlaces::kAll) pieces = tensor.shape[axis_dim];
  }
  const size_t size = DTypeSize(dtype);
  char fill_bytes[sizeof(double)];
  FillElements(dtype, fill, 1, fill_bytes);
  const auto* data = static_cast<const char*>(tensor.data);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const char* at = data + (row * row_elements + piece * piece_elements) * size;
      bool differs = false;
      for (int64_t i = 0; i < piece_elements && !differs; ++i) {
        differs = std::memcmp(at + i * size, fill_bytes, size) != 0;
      }
      if (!differs) return false;
    }
  }
  return true;
}

bool HoldsWhatWasProved(DType dtype, const InputTensor& tensor, double fill, bool is_mask) {
  // Samples and features may be anything.
  if (!is_mask && dtype != DType::kInt64 && dtype != DType::kInt32) return true;
  const double lowest = std::min(fill, 0.0);
  const double infinite = std::numeric_limits<double>::infinity();
  const double highest = is_mask ? std::max(fill, 1.0) : infinite;
  switch (dtype) {
    case DType::kInt64:
      return AllWithin<int64_t>(tensor, lowest, highest);
    case DType::kInt32:
      return AllWithin<int32_t>(tensor, lowest, highest);
    case DType::kInt16:
      return AllWithin<int16_t>(tensor, lowest, highest);
    case DType::kInt8:
      return AllWithin<int8_t>(tensor, lowest, highest);
    case DType::kUInt8:
      return AllWithin<uint8_t>(tensor, lowest, highest);
    case DType::kFloat32:
      return AllWithin<float>(tensor, lowest, infinite);
    case DType::kFloat64:
      return AllWithin<double>(tensor, lowest, infinite);
    default:
      return true;
  }
}

}  // namespace reprise
