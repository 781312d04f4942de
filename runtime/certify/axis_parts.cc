#include "runtime/certify/axis_parts.h"

#include <utility>
#include <vector>

#include "runtime/certify/numbers.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/shape.h"

namespace reprise {
namespace {

// A constant along the one dim in which its two sizes differ.
struct Lines {
  std::vector<double> values;
  int64_t lines = 0;  // lines lie in front of the dim
  int64_t size = 0;   // places of the dim
  int64_t inner = 0;  // elements of each place

  static Lines Of(const Tensor& tensor, int64_t dim) {
    const Shape& shape = tensor.shape();
    const int64_t inner = Strides(shape)[dim];
    const int64_t line = inner * shape[dim];
    return {.values = tensor.ToDoubles(),
            .lines = line == 0 ? 0 : tensor.num_elements() / line,
            .size = shape[dim],
            .inner = inner};
  }
  double At(int64_t line, int64_t place, int64_t i) const {
    return values[(line * size + place) * inner + i];
  }
};

// Places `small_at` and `large_at` of all lines hold the same.
bool SamePlace(const Lines& small, int64_t small_at, const Lines& large, int64_t large_at) {
  for (int64_t line = 0; line < small.lines; ++line) {
    for (int64_t i = 0; i < small.inner; ++i) {
      if (!SameNumber(small.At(line, small_at, i), large.At(line, large_at, i))) return false;
    }
  }
  return true;
}

// Returns whether every position of each part holds the same at both sizes.
bool BeginsAlike(const std::vector<PositionPart>& parts, const AxisContext& context,
                 const Lines& small, const Lines& large) {
  int64_t small_first = 0, large_first = 0;  // places of the part
  for (const PositionPart& part : parts) {
    const int64_t size = part.extent.At(context.axis_size());
    const int64_t larger = part.extent.At(context.larger_axis_size());
    for (int64_t line = 0; line < part.lines; ++line) {
      for (int64_t place = 0; place < size * part.inner; ++place) {
        const int64_t small_at = small_first + line * size * part.inner + place;
        const int64_t large_at = large_first + line * larger * part.inner + place;
        if (!SamePlace(small, small_at, large, large_at)) return false;
      }
    }
    small_first += part.At(context.axis_size());
    large_first += part.At(context.larger_axis_size());
  }
  return true;
}

}  // namespace

std::optional<AxisFlowValue> FlowInParts(const Tensor& small, const Tensor& large,
                                         const AxisContext& context) {
  const Shape &a = small.shape(), &b = large.shape();
  if (context.is_batch() || a.size() != b.size()) return std::nullopt;
  std::optional<int64_t> dim;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] == b[d]) continue;
    if (dim.has_value()) return std::nullopt;
    dim = static_cast<int64_t>(d);
  }
  if (!dim.has_value()) return std::nullopt;
  const auto candidates = context.PartsOf(a[*dim], b[*dim]);
  if (candidates.empty()) return std::nullopt;
  const Lines lines = Lines::Of(small, *dim), larger = Lines::Of(large, *dim);
  if (lines.lines != larger.lines || lines.inner != larger.inner) return std::nullopt;
  for (const std::vector<PositionPart>& parts : candidates) {
    if (!BeginsAlike(parts, context, lines, larger)) continue;
    Positions positions = {.dim = *dim};
    if (parts.size() == 1) {
      positions.extent = parts[0].extent;
      positions.inner = parts[0].inner;
      positions.repeated = parts[0].lines != 1;
    } else {
      positions.moved = positions.repeated = true;
    }
    if (positions.repeated) positions.parts = parts;
    AxisFlowValue flow = {.along = {std::move(positions)}};
    flow.nonnegative = AllElements(large, [](double value) { return value >= 0; });
    return flow;
  }
  return std::nullopt;
}

}  // namespace reprise
