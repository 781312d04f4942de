#include "runtime/engine/model/length_values.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/graph/shape.h"
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

}  // namespace

bool AllLengthsUpTo(int64_t most, DType dtype, const InputTensor& tensor) {
  bool within = true;
  const absl::Status known = ops::Dispatch(ops::NumericList(), dtype, [&]<typename T>() {
    within = AllWithin<T>(tensor, 0, static_cast<double>(most));
  });
  return within || !known.ok();
}

}  // namespace reprise
